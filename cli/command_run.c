/* rung run SPEC: coordinator and workers on this machine, live progress, the leaderboard at the end. */
#include "cli/command.h"
#include "cli/options.h"
#include "cli/serve.h"

#include "base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const char usage[] =
    "usage: rung run SPEC [OPTION]...\n"
    "       rung run --resume [SWEEP] [OPTION]...\n"
    "Runs a sweep on this machine and prints the leaderboard. Other machines may\n"
    "attach: the address is printed.\n"
    "\n"
    "  --devices D          auto (default) or cpu:N\n"
    "  --bind ADDRESS       where others attach (default tcp://127.0.0.1:0: any port)\n"
    "  --top N              rows of the leaderboard at the end (default 10)\n"
    "  --format F           table (default), json or csv\n" SERVE_OPTIONS_HELP;

enum { OPTION_DEVICES = OPTION_OWN, OPTION_BIND, OPTION_TOP, OPTION_FORMAT };

static const struct option options_table[] = {SERVE_LONG_OPTIONS,
                                              {"devices", required_argument, NULL, OPTION_DEVICES},
                                              {"bind", required_argument, NULL, OPTION_BIND},
                                              {"top", required_argument, NULL, OPTION_TOP},
                                              {"format", required_argument, NULL, OPTION_FORMAT},
                                              {NULL, 0, NULL, 0}};

struct run {
    const char *devices, *bind, *top, *format;
    char folder[64];   /* 0700: the socket of the own worker */
    char address[96];  /* ipc:// in it */
    pid_t worker;      /* 0: none */
    int worker_status; /* of waitpid, once worker is 0 again */
    bool worker_failed;
};

/* In the child: become `rung worker`; it ends with this process, whatever ends that. */
static void become_worker(const struct run *run, const struct serve *serve, int error_fd, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(EXIT_INTERRUPTED);
    setpgid(0, 0); /* Ctrl-C on the terminal is for the coordinator, which then drains this worker */
    dup2(error_fd, STDERR_FILENO);
    const char *verbosity = serve->options->verbose ? "--verbose" : "--quiet";
    execl("/proc/self/exe", "rung", "worker", run->address, "--devices", run->devices, "--name", "local",
          "--insecure", "--reconnect", "10s", verbosity, (char *)NULL);
    perror("rung run: start the worker");
    _exit(EXIT_RESOURCE);
}

static int start_worker(struct run *run, struct serve *serve)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        perror("rung run: pipe");
        return EXIT_RESOURCE;
    }
    pid_t parent = getpid();
    fflush(NULL);
    run->worker = fork();
    if (run->worker == 0)
        become_worker(run, serve, ends[1], parent);
    close(ends[1]);
    if (run->worker < 0) {
        perror("rung run: fork");
        run->worker = 0;
        close(ends[0]);
        return EXIT_RESOURCE;
    }
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    serve->progress.child_fd = ends[0];
    return 0;
}

/* A worker that ended before the sweep did (it says why itself) leaves nobody to train. */
static void watch_worker(void *user, struct serve *serve)
{
    struct run *run = user;
    if (run->worker == 0 || waitpid(run->worker, &run->worker_status, WNOHANG) != run->worker)
        return;
    run->worker = 0;
    bool fine = WIFEXITED(run->worker_status) && WEXITSTATUS(run->worker_status) == 0;
    if (fine || serve->progress.counts.workers > 0)
        return;
    run->worker_failed = true;
    progress_line(&serve->progress,
                  "rung run: this machine's worker ended; the sweep stops and can be resumed");
    server_request_stop(serve->server, 1);
}

static void end_worker(struct run *run, struct serve *serve)
{
    if (run->worker != 0) {
        /* It was told to drain; after an interrupt pressed twice it may still be at work. */
        if (kill(run->worker, SIGTERM) == 0)
            waitpid(run->worker, &run->worker_status, 0);
        run->worker = 0;
    }
    if (serve->progress.child_fd >= 0) {
        close(serve->progress.child_fd);
        serve->progress.child_fd = -1;
    }
}

static int print_leaderboard(const struct run *run, const struct serve *serve)
{
    char *arguments[] = {"leaderboard", (char *)server_sweep_id(serve->server),
                         "--db",        (char *)serve->options->db,
                         "--top",       (char *)run->top,
                         "--format",    (char *)run->format,
                         NULL};
    return command_leaderboard(8, arguments);
}

static void print_start(const struct run *run, const struct serve *serve)
{
    serve_print_start(serve);
    const char *address = server_address(serve->server, 1);
    if (address && strncmp(run->bind, "tcp://", 6) == 0)
        serve_print_attach(address, "more workers may attach: ");
}

static int serve_sweep(struct run *run, struct serve *serve, struct serve_options *options, const char *what)
{
    snprintf(run->folder, sizeof(run->folder), "/tmp/rung-XXXXXX");
    if (!mkdtemp(run->folder)) {
        fprintf(stderr, "rung run: make a private folder below /tmp: %s\n", strerror(errno));
        return EXIT_RESOURCE;
    }
    snprintf(run->address, sizeof(run->address), "ipc://%s/coordinator", run->folder);
    serve->binds[0] = run->address;
    serve->binds[1] = run->bind;
    int result = serve_open(serve, "run", options, what);
    if (result == 0) {
        if (!options->quiet)
            print_start(run, serve);
        result = start_worker(run, serve);
    }
    if (result == 0) {
        result = serve_run(serve, watch_worker, run);
        end_worker(run, serve);
        if (run->worker_failed)
            result = EXIT_RESOURCE;
        else if (result == EXIT_DONE || result == EXIT_UNRANKED)
            print_leaderboard(run, serve);
    }
    folder_remove(run->folder, NULL);
    return result;
}

int command_run(int argc, char **argv)
{
    struct serve_options options;
    struct serve serve = {0};
    struct run run = {.devices = "auto", .bind = "tcp://127.0.0.1:0", .top = "10", .format = "table"};
    int code;
    serve_options_init(&options);
    options_start();
    while ((code = options_next("run", argc, argv, options_table)) != -1) {
        switch (code) {
        case 'h':
            fputs(usage, stdout);
            return EXIT_DONE;
        case '?':
            return EXIT_USAGE;
        case OPTION_DEVICES:
            run.devices = optarg;
            break;
        case OPTION_BIND:
            run.bind = optarg;
            break;
        case OPTION_TOP:
            run.top = optarg;
            break;
        case OPTION_FORMAT:
            run.format = optarg;
            break;
        default:
            serve_option(&options, code, optarg);
        }
    }
    if (argc - optind > 1)
        return command_usage_error("run", "one SPEC at a time; found also '%s'", argv[optind + 1]);
    const char *what = optind < argc ? argv[optind] : NULL;
    if (!what && !options.resume)
        return command_usage_error("run", "SPEC is missing");
    if (strcmp(run.format, "table") != 0 && strcmp(run.format, "json") != 0 && strcmp(run.format, "csv") != 0)
        return command_usage_error("run", "--format is table, json or csv, not '%s'", run.format);
    int result = serve_sweep(&run, &serve, &options, what);
    serve_close(&serve);
    return result;
}
