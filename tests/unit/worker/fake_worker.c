/* Two programs in one, so that tests of the agent need no trainer:
 *
 *   fake_worker ENDPOINT DEVICES FOLDER [stay] [wait=S] [reconnect=S] [stop=S]   a worker with the real agent
 *   fake_worker runner DEVICE   its child: speaks the link and obeys the parameters
 *   fake_worker runner --describe KIND   two pretend GPUs
 *
 * epochs (default 9: finishes there), delay_ms (between epochs, listening), held_ms (ends so long after a
 * pause), spoil_at (the device fails), crash_at, exit_at with exit_code, hang_at, die_at (SIGKILL), junk_at,
 * diverge_at, nan, chatter (prints that many bytes each epoch), say (a line each epoch).
 *
 * A checkpoint is the text "trial T resource R". With FAKE_RUNNER_FAILS set the runner ends before it is
 * idle. */
#include "base/files.h"
#include "worker/agent.h"
#include "worker/link.h"

#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct fake {
    struct link link;
    json_t *run; /* under way or paused */
    int64_t resource, until;
    bool paused, stopped, interrupted;
};

static int64_t parameter(const struct fake *fake, const char *name, int64_t fallback)
{
    return json_get_integer(json_object_get(fake->run, "parameters"), name, fallback);
}

static void fake_send(struct fake *fake, json_t *line)
{
    if (link_send(&fake->link, line, NULL) != 0) {
        _exit(0);
    }
    json_decref(line);
}

static void fake_ended(struct fake *fake, const char *outcome, bool save)
{
    const char *path = json_get_string(fake->run, "save", "");
    if (save) {
        char text[100];
        snprintf(text, sizeof text, "trial %lld resource %lld",
                 (long long)json_get_integer(fake->run, "trial", -1), (long long)fake->resource);
        if (file_write(path, text, strlen(text), 0600, NULL) != 0) {
            outcome = "crashed";
        }
    }
    bool full = save && parameter(fake, "disk_full", 0);
    const char *blame = full ? BLAME_WORKER : parameter(fake, "damaged", 0) ? BLAME_CHECKPOINT : NULL;
    outcome = blame ? "interrupted" : outcome;
    fake_send(fake,
              json_pack("{s:s,s:O,s:O,s:s,s:I,s:s?,s:s?,s:s?,s:{s:{s:f}}}", "type", "ended", "trial",
                        json_object_get(fake->run, "trial"), "attempt", json_object_get(fake->run, "attempt"),
                        "outcome", outcome, "resource", (json_int_t)fake->resource, "checkpoint",
                        save && !full ? path : NULL, "error", full ? "No space left on device" : NULL,
                        "blame", blame, "details", "derived", "peak_learning_rate", 0.5));
    fake->paused = strcmp(outcome, "paused") == 0;
    if (!fake->paused) {
        json_decref(fake->run);
        fake->run = NULL;
    }
}

static void fake_misbehave(struct fake *fake)
{
    if (fake->resource == parameter(fake, "spoil_at", -1)) {
        fake_send(fake, json_pack("{s:s,s:O,s:O,s:s,s:I,s:s,s:b}", "type", "ended", "trial",
                                  json_object_get(fake->run, "trial"), "attempt",
                                  json_object_get(fake->run, "attempt"), "outcome", "crashed", "resource",
                                  (json_int_t)fake->resource, "error", "cudaErrorIllegalAddress",
                                  "device_failed", 1));
        _exit(4);
    }
    if (fake->resource == parameter(fake, "crash_at", -1)) {
        fprintf(stderr, "about to crash\n");
        fflush(stderr);
        signal(SIGSEGV, SIG_DFL);
        raise(SIGSEGV);
    }
    if (fake->resource == parameter(fake, "exit_at", -1)) {
        _exit((int)parameter(fake, "exit_code", 7));
    }
    if (fake->resource == parameter(fake, "die_at", -1)) {
        raise(SIGKILL);
    }
    if (fake->resource == parameter(fake, "hang_at", -1)) {
        for (;;) {
            pause();
        }
    }
    if (fake->resource == parameter(fake, "junk_at", -1)) {
        ssize_t ignored = write(fake->link.fd, "this is no JSON\n", 16);
        (void)ignored;
    }
    if (parameter(fake, "say", 0)) {
        fprintf(stderr, "epoch %lld of trial %lld\n", (long long)fake->resource,
                (long long)json_get_integer(fake->run, "trial", -1));
    }
    for (int64_t i = parameter(fake, "chatter", 0); i > 0; i--) {
        putchar(i % 80 == 0 ? '\n' : 'x');
    }
    fflush(stdout);
}

static void fake_epoch(struct fake *fake)
{
    fake->resource++;
    fake_misbehave(fake);
    double value = parameter(fake, "nan", 0) ? NAN : 1.0 / (double)fake->resource;
    fake_send(fake, json_pack("{s:s,s:O,s:O,s:I,s:{s:o},s:f}", "type", "report", "trial",
                              json_object_get(fake->run, "trial"), "attempt",
                              json_object_get(fake->run, "attempt"), "resource", (json_int_t)fake->resource,
                              "metrics", "loss", json_number(value), "seconds", 0.001));
    if (fake->resource == parameter(fake, "diverge_at", -1)) {
        fake_ended(fake, "diverged", false);
    }
}

static void fake_begin(struct fake *fake, json_t *line)
{
    json_decref(fake->run);
    fake->run = json_incref(line);
    fake->paused = fake->stopped = fake->interrupted = false;
    fake->resource = json_get_integer(line, "start", 0);
    fake->until = json_get_integer(line, "until", 0);
    const char *path = json_get_string(line, "checkpoint", NULL);
    if (path) {
        char expected[100];
        snprintf(expected, sizeof expected, "resource %lld", (long long)fake->resource);
        char *text = file_read(path, 64 << 20, NULL, NULL);
        if (!text || !strstr(text, expected) || parameter(fake, "damaged", 0)) {
            fake_ended(fake, "invalid", false);
        }
        free(text);
    } else if (fake->resource > 0) {
        fake_ended(fake, "invalid", false);
    }
}

static void fake_take(struct fake *fake, json_t *line)
{
    const char *type = json_get_string(line, "type", "");
    if (strcmp(type, "sweep") == 0) {
        fake_send(fake, json_pack("{s:s,s:s}", "type", "idle", "device", "cpu/fake"));
    } else if (strcmp(type, "run") == 0) {
        fake_begin(fake, line);
    } else if (strcmp(type, "until") == 0 && fake->run) {
        int64_t until = json_get_integer(line, "until", 0);
        fake->until = until > fake->until ? until : fake->until;
        fake->paused = fake->paused && fake->until <= fake->resource;
    } else if (strcmp(type, "stop") == 0 && fake->run && !fake->paused) {
        fake->interrupted = strcmp(json_get_string(line, "reason", ""), "interrupted") == 0;
        fake->stopped = !fake->interrupted;
    }
}

static void fake_step(struct fake *fake)
{
    if (fake->stopped) {
        fake_ended(fake, "stopped", false);
    } else if (json_is_object(json_object_get(fake->run, "final"))) {
        fake->resource = json_get_integer(json_object_get(fake->run, "final"), "epochs", 0);
        fake_ended(fake, "finished", true);
    } else if (fake->resource >= parameter(fake, "epochs", 9)) {
        fake_ended(fake, "finished", false);
    } else if (fake->resource >= fake->until) {
        fake_ended(fake, "paused", true);
    } else if (fake->interrupted) {
        fake_ended(fake, "interrupted", true);
    } else {
        fake_epoch(fake);
    }
    fake->stopped = fake->interrupted = false;
}

static int fake_runner(void)
{
    struct fake fake = {0};
    int fd = atoi(getenv(LINK_FD_VARIABLE));
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    if (getenv("FAKE_RUNNER_FAILS")) {
        fprintf(stderr, "no device here\n");
        return 4;
    }
    fcntl(fd, F_SETFL, O_NONBLOCK);
    link_init(&fake.link, fd);
    for (;;) {
        bool working = fake.run && !fake.paused;
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        int held = fake.paused ? (int)parameter(&fake, "held_ms", -1) : -1;
        int ready = poll(&wait, 1, working ? (int)parameter(&fake, "delay_ms", 0) : held);
        if (ready == 0 && held > 0) {
            return 1;
        }
        json_t *line = NULL;
        int result;
        while ((result = link_receive(&fake.link, &line, NULL)) == 1) {
            fake_take(&fake, line);
            json_decref(line);
        }
        if (result < 0) {
            return 0;
        }
        if (fake.run && !fake.paused) {
            fake_step(&fake);
        }
    }
}

static struct agent *the_agent;
static volatile sig_atomic_t signals;

static void on_signal(int number)
{
    (void)number;
    agent_request_stop(the_agent, ++signals);
}

static int fake_worker(int argc, char **argv)
{
    struct error err = {0};
    char program[PATH_MAX] = "";
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    struct log log = {.fd = getenv("RUNG_TEST_LOG") ? 2 : -1, .level = LOG_LEVEL_DEBUG};
    struct agent_settings settings = {.endpoint = argv[1],
                                      .name = "fake",
                                      .devices = argv[2],
                                      .folder = argv[3],
                                      .program = program,
                                      .wait_seconds = 5,
                                      .reconnect_seconds = 20,
                                      .log = &log};
    for (int i = 4; i < argc; i++) {
        settings.stay = settings.stay || strcmp(argv[i], "stay") == 0;
        if (strncmp(argv[i], "wait=", 5) == 0) {
            settings.wait_seconds = atof(argv[i] + 5);
        } else if (strncmp(argv[i], "reconnect=", 10) == 0) {
            settings.reconnect_seconds = atof(argv[i] + 10);
        } else if (strncmp(argv[i], "stop=", 5) == 0) {
            settings.stop_seconds = atof(argv[i] + 5);
        }
    }
    the_agent = length > 0 ? agent_create(&settings, &err) : NULL;
    if (!the_agent) {
        fprintf(stderr, "%s\n", err.message);
        return error_exit_code(&err);
    }
    signal(SIGTERM, on_signal);
    int result = agent_run(the_agent, &err);
    agent_destroy(the_agent);
    if (result < 0) {
        fprintf(stderr, "%s\n", err.message);
        return error_exit_code(&err);
    }
    return result == 1 ? 130 : 0;
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[2], "--describe") == 0) {
        puts("{\"devices\": [{\"id\": \"emulated:0\"}, {\"id\": \"emulated:1\"}]}");
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "runner") == 0) {
        return fake_runner();
    }
    return argc >= 4 ? fake_worker(argc, argv) : 2;
}
