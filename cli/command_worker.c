/* rung worker ENDPOINT: attach this machine to a coordinator. */
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/options.h"

#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "base/text.h"
#include "wire/security.h"
#include "worker/agent.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char usage[] =
    "usage: rung worker ENDPOINT [OPTION]...\n"
    "Attaches this machine to the coordinator at ENDPOINT: tcp://HOST:PORT,\n"
    "ipc://PATH, @FILE (as written by --endpoint-file) or the variable RUNG_ENDPOINT.\n"
    "\n"
    "  --devices D          cpu:N, cuda:all, cuda:0,1, or auto (default): every GPU,\n"
    "                       else what affinity, cgroup and SLURM_CPUS_PER_TASK leave\n"
    "                       of the CPUs\n"
    "  --name NAME          unique among workers (default: host name and process id)\n"
    "  --dir DIR            for fetched data and checkpoints (default ~/.cache/rung)\n"
    "  --wait TIME          for the first connection (default 60s; s, m, h, d)\n"
    "  --reconnect TIME     for a coordinator that went away, training on meanwhile\n"
    "                       (default 1h)\n"
    "  --stay               wait for the next sweep when one has ended\n"
    "  --server-key KEY     the coordinator's public key (default: --config's)\n"
    "  --config DIR         folder of the keys (default ~/.config/rung)\n"
    "  --insecure           no encryption: only in a closed network\n"
    "  -q, --quiet          only errors;  -v, --verbose: more\n";

enum {
    OPTION_DEVICES = 1000,
    OPTION_NAME,
    OPTION_DIR,
    OPTION_WAIT,
    OPTION_RECONNECT,
    OPTION_STAY,
    OPTION_KEY,
    OPTION_CONFIG,
    OPTION_INSECURE
};

static const struct option options_table[] = {{"devices", required_argument, NULL, OPTION_DEVICES},
                                              {"name", required_argument, NULL, OPTION_NAME},
                                              {"dir", required_argument, NULL, OPTION_DIR},
                                              {"wait", required_argument, NULL, OPTION_WAIT},
                                              {"reconnect", required_argument, NULL, OPTION_RECONNECT},
                                              {"stay", no_argument, NULL, OPTION_STAY},
                                              {"server-key", required_argument, NULL, OPTION_KEY},
                                              {"config", required_argument, NULL, OPTION_CONFIG},
                                              {"insecure", no_argument, NULL, OPTION_INSECURE},
                                              {"quiet", no_argument, NULL, 'q'},
                                              {"verbose", no_argument, NULL, 'v'},
                                              {"help", no_argument, NULL, 'h'},
                                              {NULL, 0, NULL, 0}};

struct worker_options {
    struct agent_settings settings;
    const char *endpoint, *server_key, *config;
    bool insecure, quiet, verbose;
};

#define LONGEST_SECONDS (100.0 * 366 * 24 * 3600) /* for ever; fits what counts nanoseconds */

/* "90", "90s", "1.5m", "1h", "2d" as seconds. */
static bool parse_duration(const char *text, double *seconds)
{
    static const struct {
        char suffix;
        double factor;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
    char number[32];
    double factor = 1;
    size_t size = strlen(text);
    for (size_t i = 0; size > 0 && i < sizeof(units) / sizeof(units[0]); i++) {
        if (text[size - 1] == units[i].suffix) {
            factor = units[i].factor;
            size--;
            break;
        }
    }
    if (size == 0 || size >= sizeof(number)) {
        return false;
    }
    memcpy(number, text, size);
    number[size] = '\0';
    if (!number_parse(number, seconds) || *seconds < 0) {
        return false;
    }
    *seconds *= factor;
    *seconds = *seconds < LONGEST_SECONDS ? *seconds : LONGEST_SECONDS;
    return true;
}

#define LONGEST_NAME 256 /* of the protocol */

static bool is_worker_name(const char *name)
{
    return *name && strlen(name) <= LONGEST_NAME && text_is_printable(name);
}

/* 0, or the exit code. */
static int take_option(struct worker_options *options, int code, char *value)
{
    switch (code) {
    case OPTION_DEVICES:
        options->settings.devices = value;
        return 0;
    case OPTION_NAME:
        options->settings.name = value;
        return is_worker_name(value)
                   ? 0
                   : command_usage_error("worker", "--name takes 1 to %d bytes without control characters",
                                         LONGEST_NAME);
    case OPTION_DIR:
        options->settings.folder = value;
        return 0;
    case OPTION_WAIT:
        return parse_duration(value, &options->settings.wait_seconds)
                   ? 0
                   : command_usage_error("worker", "--wait takes a time like 60s or 5m, not '%s'", value);
    case OPTION_RECONNECT:
        return parse_duration(value, &options->settings.reconnect_seconds)
                   ? 0
                   : command_usage_error("worker", "--reconnect takes a time like 90s or 1h, not '%s'",
                                         value);
    case OPTION_STAY:
        options->settings.stay = true;
        return 0;
    case OPTION_KEY:
        options->server_key = value;
        return 0;
    case OPTION_CONFIG:
        options->config = value;
        return 0;
    case OPTION_INSECURE:
        options->insecure = true;
        return 0;
    case 'q':
        options->quiet = true;
        return 0;
    case 'v':
        options->verbose = true;
        return 0;
    default:
        return EXIT_USAGE;
    }
}

/* The first line of an endpoint file; the coordinator may be about to write it. free() it. */
static char *read_endpoint_file(const char *path, double wait_seconds, struct error *err)
{
    int64_t deadline = clock_now().monotonic_ns + (int64_t)(wait_seconds * NS_PER_SECOND);
    const struct timespec pause = {.tv_nsec = 100 * NS_PER_MS};
    while (!file_exists(path) && clock_now().monotonic_ns < deadline && nanosleep(&pause, NULL) == 0) {
    }
    if (!file_exists(path)) {
        error_set(err, ERROR_CONNECT,
                  "%s: no such file within %g s (a coordinator writes it with --endpoint-file)", path,
                  wait_seconds);
        return NULL;
    }
    char *text = file_read(path, 64 << 10, NULL, err);
    if (text) {
        text[strcspn(text, " \t\r\n")] = '\0';
        if (text[0] == '\0') {
            error_set(err, ERROR_USAGE, "%s: no address in it", path);
            free(text);
            return NULL;
        }
    }
    return text;
}

static char *find_endpoint(const struct worker_options *options, struct error *err)
{
    const char *endpoint = options->endpoint ? options->endpoint : getenv("RUNG_ENDPOINT");
    if (!endpoint || !*endpoint) {
        error_set(err, ERROR_USAGE,
                  "ENDPOINT is missing: tcp://HOST:PORT, ipc://PATH, @FILE, or RUNG_ENDPOINT");
        return NULL;
    }
    return endpoint[0] == '@' ? read_endpoint_file(endpoint + 1, options->settings.wait_seconds, err)
                              : strdup(endpoint);
}

static void request_stop(void *agent, int level)
{
    agent_request_stop(agent, level);
}

static int run_agent(const struct agent_settings *settings)
{
    struct error err = {0};
    interrupt_hold();
    struct agent *agent = agent_create(settings, &err);
    if (!agent) {
        return command_fail("worker", &err);
    }
    interrupt_pass(request_stop, agent);
    int result = agent_run(agent, &err);
    interrupt_hold(); /* what is left takes a moment only */
    agent_destroy(agent);
    if (result < 0) {
        return command_fail("worker", &err);
    }
    return result == 1 ? EXIT_INTERRUPTED : EXIT_DONE;
}

static int attach(struct worker_options *options)
{
    struct agent_settings *settings = &options->settings;
    struct error err = {0};
    struct security security = {0};
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    if (length < 0) {
        error_set(&err, ERROR_RESOURCE, "/proc/self/exe: %s", strerror(errno));
        return command_fail("worker", &err);
    }
    program[length] = '\0';
    char *endpoint = find_endpoint(options, &err);
    if (!endpoint) {
        return command_fail("worker", &err);
    }
    struct log log = {.fd = STDERR_FILENO,
                      .level = options->verbose ? LOG_LEVEL_DEBUG
                               : options->quiet ? LOG_LEVEL_ERROR
                                                : LOG_LEVEL_INFO};
    bool open = options->insecure || strncmp(endpoint, "ipc://", 6) == 0;
    settings->endpoint = endpoint;
    settings->program = program;
    settings->log = &log;
    if (options->insecure && strncmp(endpoint, "ipc://", 6) != 0 && !options->quiet) {
        fprintf(stderr, "rung worker: --insecure: what is sent can be read and changed by others\n");
    }
    int result = 0;
    if (!open && security_for_client(&security, options->config, options->server_key, &err) != 0) {
        result = command_fail("worker", &err);
    } else {
        settings->security = open ? NULL : &security;
        result = run_agent(settings);
    }
    security_release(&security);
    free(endpoint);
    return result;
}

int command_worker(int argc, char **argv)
{
    struct worker_options options = {
        .settings = {.devices = "auto", .wait_seconds = 60, .reconnect_seconds = 3600}};
    int code;
    interrupt_begin();
    options_start();
    while ((code = options_next("worker", argc, argv, options_table)) != -1) {
        if (code == 'h') {
            fputs(usage, stdout);
            return EXIT_DONE;
        }
        int result = take_option(&options, code, optarg);
        if (result != 0) {
            return result;
        }
    }
    if (argc - optind > 1) {
        return command_usage_error("worker", "one ENDPOINT at a time; found also '%s'", argv[optind + 1]);
    }
    options.endpoint = optind < argc ? argv[optind] : NULL;
    return attach(&options);
}
