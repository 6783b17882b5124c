/* How many trials a second the coordinator can hand out, judge and keep: real ZeroMQ over TCP with CURVE, a
 * real SQLite file, and worker processes that answer every assignment at once with one report and an `ended`.
 *
 * A trial counts when its `ended` was acknowledged: then it is on disk. Its latency runs from the slot's
 * `ready` to there. */
#include "base/clock.h"
#include "base/files.h"
#include "coordinator/server.h"
#include "tests/bench/scheduler_worker.h"
#include "tests/support/vfs.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

#define VFS_NAME "bench"
#define WORKER_LIMIT 64

struct options {
    long trials, workers, slots, delay_ms;
};

struct bench {
    struct options options;
    char folder[64], db[96], keys[96];
    struct security server_security, client_security;
    int invitations[WORKER_LIMIT], outcomes[WORKER_LIMIT]; /* pipes, our ends */
    pid_t pids[WORKER_LIMIT];
};

/* Before any thread exists; the child waits for its invitation. */
static int worker_fork(struct bench *bench, long index)
{
    int invitation[2], outcome[2];
    if (pipe(invitation) || pipe(outcome)) {
        return fail("pipe", NULL);
    }
    pid_t pid = fork();
    if (pid < 0) {
        return fail("fork", NULL);
    }
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(invitation[1]);
        close(outcome[0]);
        _exit(worker_main(&(struct worker_settings){.trials = bench->options.trials,
                                                    .slots = bench->options.slots,
                                                    .security = &bench->client_security,
                                                    .invitation_fd = invitation[0],
                                                    .outcome_fd = outcome[1]}));
    }
    close(invitation[0]);
    close(outcome[1]);
    bench->pids[index] = pid;
    bench->invitations[index] = invitation[1];
    bench->outcomes[index] = outcome[0];
    return 0;
}

/* ---- the coordinator ---- */

static int spec_make(struct spec *spec, long trials, struct error *err)
{
    static const struct setting settings[] = {
        {.name = "epochs", .type = SETTING_INTEGER, .minimum = 1, .maximum = 10, .fallback = "1"},
        {.name = "learning_rate",
         .type = SETTING_NUMBER,
         .maximum = 10,
         .fallback = "0.1",
         .searchable = true,
         .help = "step size"},
        {.name = NULL},
    };
    struct spec_options options = {.train_settings = settings};
    char text[512];
    int size = snprintf(
        text, sizeof text,
        "name: bench\nmethod: random\nmetric: {name: accuracy, goal: maximize}\nrun_cap: %ld\nseed: 7\n"
        "parameters:\n  learning_rate: {min: 0.0, max: 1.0}\ntrain: {epochs: 1}\n",
        trials);
    return spec_parse(spec, text, (size_t)size, "bench.yaml", &options, NULL, err);
}

static int invite(const struct bench *bench, const struct server *server)
{
    struct invitation invitation = {.address = ""};
    snprintf(invitation.address, sizeof invitation.address, "%s", server_address(server, 0));
    memcpy(invitation.server_key, bench->client_security.server_key, KEY_SIZE);
    for (long i = 0; i < bench->options.workers; i++) {
        if (write_all(bench->invitations[i], &invitation, sizeof invitation)) {
            return fail("invite a worker", NULL);
        }
    }
    return 0;
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static double percentile_ms(const int64_t *sorted, int64_t count, double share)
{
    return (double)sorted[(int64_t)(share * (double)(count - 1))] / NS_PER_MS;
}

static int outcomes_print(const struct bench *bench, int64_t turns, long syncs)
{
    const struct options *options = &bench->options;
    int64_t *latencies = calloc((size_t)options->trials + 1, sizeof *latencies);
    struct outcome_of_worker all = {.first_ns = INT64_MAX};
    for (long i = 0; latencies && i < options->workers; i++) {
        struct outcome_of_worker one;
        if (read_all(bench->outcomes[i], &one, sizeof one) || all.count + one.count > options->trials ||
            read_all(bench->outcomes[i], latencies + all.count, (size_t)one.count * sizeof *latencies)) {
            free(latencies);
            return fail("read a worker's outcome", NULL);
        }
        all.count += one.count;
        all.first_ns = one.count > 0 && one.first_ns < all.first_ns ? one.first_ns : all.first_ns;
        all.last_ns = one.last_ns > all.last_ns ? one.last_ns : all.last_ns;
    }
    if (!latencies || all.count != options->trials) {
        free(latencies);
        fprintf(stderr, "bench_scheduler: %lld of %ld trials were acknowledged\n", (long long)all.count,
                options->trials);
        return -1;
    }
    qsort(latencies, (size_t)all.count, sizeof *latencies, compare);
    double seconds = (double)(all.last_ns - all.first_ns) / NS_PER_SECOND;
    printf("trials %lld in %.3f s by %ld workers with %ld slots each, fsync delay %ld ms\n",
           (long long)all.count, seconds, options->workers, options->slots, options->delay_ms);
    printf("durable trials per second: %.0f\n", (double)all.count / seconds);
    printf("turns %lld, fsyncs %ld, trials per fsync %.1f\n", (long long)turns, syncs,
           (double)all.count / (double)syncs);
    printf("latency, ready to durable: median %.2f ms, 90 %% %.2f ms, 99 %% %.2f ms, worst %.2f ms\n",
           percentile_ms(latencies, all.count, 0.5), percentile_ms(latencies, all.count, 0.9),
           percentile_ms(latencies, all.count, 0.99), percentile_ms(latencies, all.count, 1));
    free(latencies);
    return 0;
}

static int serve(struct bench *bench, const struct spec *spec, struct test_vfs *vfs)
{
    static const char *const binds[] = {"tcp://127.0.0.1:*", NULL};
    struct error err = {0};
    struct server_settings settings = {
        .spec = spec, .db = bench->db, .binds = binds, .security = &bench->server_security, .vfs = VFS_NAME};
    struct server *server = server_create(&settings, &err);
    if (!server) {
        return fail("start the server", &err);
    }
    test_vfs_delay_sync(vfs, (int)bench->options.delay_ms);
    long syncs = test_vfs_syncs(vfs);
    int result = invite(bench, server);
    if (result == 0 && server_run(server, &err) != 0) {
        result = fail("serve", &err);
    }
    syncs = test_vfs_syncs(vfs) - syncs;
    int64_t turns = server_turns(server);
    server_destroy(server);
    return result ? result : outcomes_print(bench, turns, syncs);
}

static int bench_run(struct bench *bench)
{
    struct error err = {0};
    struct spec spec = {0};
    if (security_for_coordinator(&bench->server_security, bench->keys, &err) ||
        security_for_client(&bench->client_security, bench->keys, NULL, &err)) {
        return fail("keys", &err);
    }
    for (long i = 0; i < bench->options.workers; i++) {
        if (worker_fork(bench, i)) {
            return -1;
        }
    }
    if (spec_make(&spec, bench->options.trials, &err)) {
        return fail("spec", &err);
    }
    struct test_vfs *vfs = test_vfs_create(VFS_NAME);
    int result = vfs ? serve(bench, &spec, vfs) : -1;
    if (vfs) {
        test_vfs_destroy(vfs);
    }
    spec_release(&spec);
    return result;
}

static void workers_end(struct bench *bench)
{
    for (long i = 0; i < bench->options.workers; i++) {
        if (bench->pids[i] > 0) {
            close(bench->invitations[i]);
            close(bench->outcomes[i]);
            kill(bench->pids[i], SIGTERM);
            waitpid(bench->pids[i], NULL, 0);
        }
    }
}

static int options_read(struct options *options, int count, char **arguments)
{
    static const struct option known[] = {
        {"trials", required_argument, NULL, 't'},
        {"workers", required_argument, NULL, 'w'},
        {"slots", required_argument, NULL, 's'},
        {"fsync-delay-ms", required_argument, NULL, 'd'},
        {NULL, 0, NULL, 0},
    };
    *options = (struct options){.trials = 50000, .workers = 2, .slots = 256};
    int option;
    while ((option = getopt_long(count, arguments, "", known, NULL)) != -1) {
        long *target = option == 't'   ? &options->trials
                       : option == 'w' ? &options->workers
                       : option == 's' ? &options->slots
                       : option == 'd' ? &options->delay_ms
                                       : NULL;
        if (!target) {
            return -1;
        }
        *target = strtol(optarg, NULL, 10);
    }
    bool sensible = options->trials >= 1 && options->workers >= 1 && options->workers <= WORKER_LIMIT &&
                    options->slots >= 1 && options->slots <= 1000 && options->delay_ms >= 0;
    return sensible && optind == count ? 0 : -1;
}

int main(int count, char **arguments)
{
    struct bench bench = {.folder = ""};
    if (options_read(&bench.options, count, arguments)) {
        fprintf(
            stderr,
            "usage: bench_scheduler [--trials N] [--workers 1..%d] [--slots 1..1000] [--fsync-delay-ms N]\n",
            WORKER_LIMIT);
        return 2;
    }
    /* Here, and not in /tmp, which may be memory, where an fsync costs nothing. */
    strcpy(bench.folder, "./bench-scheduler-XXXXXX");
    if (!mkdtemp(bench.folder)) {
        return fail("make a folder", NULL) ? 1 : 0;
    }
    snprintf(bench.db, sizeof bench.db, "%s/rung.db", bench.folder);
    snprintf(bench.keys, sizeof bench.keys, "%s/keys", bench.folder);
    int result = bench_run(&bench);
    workers_end(&bench);
    security_release(&bench.server_security);
    security_release(&bench.client_security);
    folder_remove(bench.folder, NULL);
    return result ? 1 : 0;
}
