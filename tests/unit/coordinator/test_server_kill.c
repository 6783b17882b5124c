/* A coordinator that is killed at any moment, again and again: its process, its sockets and its database are
 * real, and the worker here lives through all of it. In the end every trial was completed once, and nothing
 * acknowledged is missing. */
#include "base/clock.h"
#include "base/files.h"
#include "base/random.h"
#include "tests/unit/coordinator/server_fixture.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#define TRIALS 2000
#define SLOTS 6
#define KILLS 16
#define LIFE_MS 40         /* at most, from the first message on */
#define SHORT_LIFE_EVERY 4 /* so often the kill comes before anything is served: during the recovery */
#define HEARTBEAT_NS (20 * NS_PER_MS)
#define PATIENCE_NS (50 * NS_PER_SECOND)

static uint64_t seed;

/* ---- the process that is killed: this program once more, with the folder as its argument ---- */

static int serve(const char *folder)
{
    struct server_fixture held = {.folder = ""}, *fixture = &held;
    struct error err = {0};
    if (server_fixture_init(fixture, folder)) {
        return 2;
    }
    spec_make(fixture, "killed", TRIALS, 1);

    /* Whether the sweep exists is known only by trying: the last one may have died before its first commit.
     */
    fixture->settings.resume = true;
    struct server *server = server_create(&fixture->settings, &err);
    if (!server && strstr(err.message, "no sweep")) {
        fixture->settings.resume = false;
        server = server_create(&fixture->settings, &err);
    }
    if (!server) {
        fprintf(stderr, "server: %s\n", err.message);
        return 3;
    }
    int result = server_run(server, &err);
    if (result < 0) {
        fprintf(stderr, "server: %s\n", err.message);
    }
    server_destroy(server);
    bus_destroy(fixture->bus);
    spec_release(&fixture->spec);
    return result ? 4 : 0;
}

static pid_t spawn(const char *folder)
{
    pid_t pid = fork();
    if (pid == 0) {
        execl("/proc/self/exe", "test_server_kill", folder, (char *)NULL);
        _exit(127);
    }
    assert_true(pid > 0);
    return pid;
}

/* ---- the worker ---- */

struct held {
    bool busy;
    int64_t trial, attempt, acknowledged;
};

struct worker {
    struct server_fixture *fixture;
    struct held slots[SLOTS];
    int64_t acknowledged[TRIALS + 1]; /* the attempt whose end was acknowledged, by trial */
    int64_t completed, repeated;
    bool drained, heard;
};

static struct held *held_find(struct worker *worker, int64_t trial, int64_t attempt)
{
    for (int i = 0; i < SLOTS; i++) {
        struct held *held = &worker->slots[i];
        if (held->busy && held->trial == trial && held->attempt == attempt) {
            return held;
        }
    }
    return NULL;
}

static void repeat(struct worker *worker, const struct held *held)
{
    if (held->acknowledged < 1) {
        say_report(worker->fixture, held->trial, held->attempt, 1, 1, (double)held->trial);
    }
    say_ended(worker->fixture, held->trial, held->attempt, 2, OUTCOME_FINISHED, 1);
}

static size_t running_list(const struct worker *worker, struct running_attempt running[SLOTS])
{
    size_t count = 0;
    for (int i = 0; i < SLOTS; i++) {
        const struct held *held = &worker->slots[i];
        if (held->busy) {
            running[count++] = (struct running_attempt){held->trial, held->attempt, 2};
        }
    }
    return count;
}

static void heartbeat(struct worker *worker)
{
    struct running_attempt running[SLOTS];
    struct message message;
    message_init(&message, MESSAGE_HEARTBEAT);
    message.running = running;
    message.running_count = running_list(worker, running);
    message.ready_slots = json_array();
    for (int i = 0; i < SLOTS; i++) {
        if (!worker->slots[i].busy) {
            json_array_append_new(message.ready_slots, json_integer(i));
        }
    }
    worker_say(worker->fixture, &message);
    json_decref(message.ready_slots);
}

static void take(struct worker *worker, const struct message *assign)
{
    const struct assignment *assignment = &assign->trials[0];
    struct held *slot = &worker->slots[assign->slot];
    if (held_find(worker, assignment->trial, assignment->attempt) ||
        worker->acknowledged[assignment->trial] == assignment->attempt) {
        return; /* held or ended already */
    }
    assert_false(slot->busy);
    assert_int_equal(worker->acknowledged[assignment->trial], 0); /* a completed trial never comes back */
    *slot = (struct held){true, assignment->trial, assignment->attempt, 0};
    repeat(worker, slot);
}

static void note(struct worker *worker, const struct message *acknowledge)
{
    struct held *held = held_find(worker, acknowledge->trial, acknowledge->attempt);
    if (!held) {
        return;
    }
    if (acknowledge->sequence > held->acknowledged) {
        held->acknowledged = acknowledge->sequence;
    }
    if (held->acknowledged < 2) {
        return;
    }
    worker->acknowledged[held->trial] = held->attempt;
    worker->completed++;
    held->busy = false;
    struct message message;
    message_init(&message, MESSAGE_READY);
    message.slot = held - worker->slots;
    message.lanes = 1;
    worker_say(worker->fixture, &message);
}

static void handle(struct worker *worker, const struct message *message)
{
    struct running_attempt running[SLOTS];
    switch (message->type) {
    case MESSAGE_ERROR:
        assert_string_equal(message->code, "unknown_session");
        say_hello(worker->fixture, running, running_list(worker, running));
        break;
    case MESSAGE_WELCOME:
        for (int i = 0; i < SLOTS; i++) {
            if (worker->slots[i].busy) {
                worker->repeated++;
                repeat(worker, &worker->slots[i]);
            }
        }
        heartbeat(worker);
        break;
    case MESSAGE_ASSIGN:
        take(worker, message);
        break;
    case MESSAGE_ACKNOWLEDGE:
        note(worker, message);
        break;
    case MESSAGE_DRAIN:
        worker->drained = true;
        say(worker->fixture, MESSAGE_BYE);
        break;
    default:
        fail_msg("got %s", message_type_name(message->type));
    }
}

/* Serves the messages there are, for at most so long. */
static void work(struct worker *worker, int64_t until_ns, int64_t *heartbeat_ns)
{
    struct endpoint *endpoint = worker->fixture->worker;
    struct error err = {0};
    struct message message;
    int result;
    while ((result = endpoint_receive(endpoint, NULL, &message, &err)) == 1) {
        worker->heard = true;
        handle(worker, &message);
        message_release(&message);
    }
    assert_int_equal(result, 0);
    int64_t now_ns = clock_now().monotonic_ns;
    if (now_ns - *heartbeat_ns > HEARTBEAT_NS && !worker->drained) {
        heartbeat(worker);
        *heartbeat_ns = now_ns;
    }
    bool readable;
    int64_t wait_ms = (until_ns - now_ns) / NS_PER_MS;
    bus_wait(&endpoint, 1, &readable, NULL, 0, NULL, wait_ms < 0 ? 0 : wait_ms < 5 ? (int)wait_ms : 5, &err);
}

static void check_store(struct server_fixture *fixture, const struct worker *worker)
{
    struct error err = {0};
    struct snapshot snapshot = {0};
    struct record sweep = {.type = RECORD_SWEEP};
    struct store *store = store_open(fixture->db, STORE_READ, NULL, &err);
    assert_non_null(store);
    assert_int_equal(store_find_sweep(store, "killed", &sweep.sweep, &err), 1);
    assert_int_equal(sweep.sweep.state, SWEEP_FINISHED);
    assert_int_equal(store_load(store, sweep.sweep.id, &snapshot, &err), 0);
    assert_int_equal(snapshot.trial_count, TRIALS);
    for (size_t i = 0; i < snapshot.trial_count; i++) {
        const struct trial_record *trial = &snapshot.trials[i];
        assert_int_equal(trial->state, TRIAL_COMPLETED);
        assert_int_equal(trial->resource, 1);
        assert_true(trial->objective == (double)trial->number);
    }
    long finished = 0;
    for (size_t i = 0; i < snapshot.attempt_count; i++) {
        const struct attempt_record *attempt = &snapshot.attempts[i];
        finished += attempt->outcome == OUTCOME_FINISHED;
        if (worker->acknowledged[attempt->trial] == attempt->number) {
            assert_int_equal(attempt->outcome, OUTCOME_FINISHED);
            assert_int_equal(attempt->last_sequence, 2);
        }
    }
    assert_int_equal(finished, TRIALS);
    snapshot_release(&snapshot);
    record_release(&sweep);
    store_close(store);
}

static void killed_again_and_again(void **state)
{
    struct server_fixture *fixture = *state;
    struct worker *worker = calloc(1, sizeof *worker);
    int64_t start_ns = clock_now().monotonic_ns, heartbeat_ns = 0;
    int kills = 0, status = 0;
    worker->fixture = fixture;
    worker_connect(fixture, fixture->address);
    pid_t pid = spawn(fixture->folder);
    int64_t kill_ns = INT64_MAX;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        int64_t now_ns = clock_now().monotonic_ns;
        assert_true(now_ns - start_ns < PATIENCE_NS);
        if (kill_ns == INT64_MAX && kills < KILLS && (worker->heard || kills % SHORT_LIFE_EVERY == 0)) {
            kill_ns = now_ns + (int64_t)random_below(seed, (uint32_t)kills, 1, 0, LIFE_MS * NS_PER_MS);
        }
        if (now_ns >= kill_ns) {
            kill(pid, SIGKILL);
            waitpid(pid, &status, 0);
            pid = spawn(fixture->folder);
            worker_connect(fixture, fixture->address); /* sooner than it would connect again by itself */
            worker->heard = false;
            kills++;
            kill_ns = INT64_MAX;
        }
        work(worker, kill_ns < now_ns + 5 * NS_PER_MS ? kill_ns : now_ns + 5 * NS_PER_MS, &heartbeat_ns);
    }
    print_message("%d kills, %d trials acknowledged, %d attempts repeated\n", kills, (int)worker->completed,
                  (int)worker->repeated);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(kills, KILLS);
    assert_true(worker->drained);
    assert_int_equal(worker->completed, TRIALS);
    check_store(fixture, worker);
    free(worker);
}

int main(int count, char **arguments)
{
    if (count == 2 && arguments[1][0] == '/') {
        return serve(arguments[1]);
    }
    seed = count > 1 ? strtoull(arguments[1], NULL, 10) : (uint64_t)time(NULL);
    print_message("seed %llu\n", (unsigned long long)seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(killed_again_and_again, server_fixture_setup,
                                        server_fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
