/* rung run SPEC: coordinator and workers on this machine, live progress, the leaderboard at the end. */
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/options.h"
#include "cli/private_folder.h"
#include "cli/serve.h"

#include "base/clock.h"
#include "worker/devices.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char usage[] =
    "usage: rung run SPEC [OPTION]...\n"
    "       rung run --resume [SWEEP] [OPTION]...\n"
    "Runs a sweep on this machine and prints the leaderboard. Other machines may\n"
    "attach: the address is printed.\n"
    "\n"
    "  --devices D          cpu:N, cuda:all, cuda:0,1, or auto (default): every GPU,\n"
    "                       else the CPUs\n"
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

#define OWN_WORKER "local"
/* Starts of the own worker after it ended before its time; one that lasted for a while begins the count anew.
 */
#define RESTART_LIMIT 3
#define LASTED_NS (60 * NS_PER_SECOND)
/* For each of the ways to end it; the second when interrupted twice. */
#define FAREWELL_NS (2 * NS_PER_SECOND)
#define HURRY_NS (200 * NS_PER_MS)

struct run {
    char *devices; /* as they were found: what its worker is told */
    const char *bind, *top, *format;
    struct private_folder folder; /* of the socket of the own worker */
    char address[PRIVATE_FOLDER_SIZE + 24];
    pid_t worker; /* 0: none */
    int64_t started_ns;
    int restarts;       /* in a row */
    bool is_to_restart; /* with the next progress: the server has let go of the old one by then */
    bool is_given_up, worker_failed;
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
    execl("/proc/self/exe", "rung", "worker", run->address, "--devices", run->devices, "--name", OWN_WORKER,
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
    run->started_ns = clock_now().monotonic_ns;
    run->worker = fork();
    if (run->worker == 0)
        become_worker(run, serve, ends[1], parent);
    close(ends[1]);
    if (serve->progress.child_fd >= 0) /* of the one before; what it said was read */
        close(serve->progress.child_fd);
    serve->progress.child_fd = -1;
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

static void describe_end(int status, char *text, size_t size)
{
    if (WIFSIGNALED(status))
        snprintf(text, size, "was killed by signal %d", WTERMSIG(status));
    else
        snprintf(text, size, "ended with code %d", WEXITSTATUS(status));
}

/* The own worker ended before the sweep did (it says why itself): started again, if that is any use. */
static void worker_ended(struct run *run, struct serve *serve, int status)
{
    char end[64], line[160];
    run->worker = 0;
    server_own_worker_gone(serve->server);
    if ((WIFEXITED(status) && WEXITSTATUS(status) == 0) || interrupt_count() > 0)
        return;
    describe_end(status, end, sizeof(end));
    if (clock_now().monotonic_ns - run->started_ns >= LASTED_NS)
        run->restarts = 0;
    run->is_to_restart = run->restarts < RESTART_LIMIT;
    run->is_given_up = !run->is_to_restart;
    snprintf(line, sizeof(line), "rung run: this machine's worker %s%s", end,
             run->is_to_restart ? "; starting it again" : "");
    progress_line(&serve->progress, line);
}

/* Without any worker there is nobody to train. */
static void watch_worker(void *user, struct serve *serve)
{
    struct run *run = user;
    int status;
    if (run->worker != 0 && waitpid(run->worker, &status, WNOHANG) == run->worker) {
        worker_ended(run, serve, status);
        return;
    }
    if (run->is_to_restart && interrupt_count() == 0) {
        run->is_to_restart = false;
        run->restarts++;
        run->is_given_up = start_worker(run, serve) != 0;
    }
    if (run->is_given_up && serve->progress.counts.workers == 0 && !run->worker_failed) {
        run->worker_failed = true;
        progress_line(&serve->progress,
                      "rung run: this machine's worker ended; the sweep stops and can be resumed");
        server_request_stop(serve->server, 1);
    }
}

/* The server is gone, and what was to be handed back has been: asked to go, told to, made to. */
static void end_worker(struct run *run, struct serve *serve)
{
    static const int signals[] = {SIGTERM, SIGTERM, SIGKILL};
    const size_t count = sizeof(signals) / sizeof(signals[0]);
    const struct timespec pause = {.tv_nsec = NS_PER_MS};
    for (size_t i = 0; run->worker != 0 && i < count; i++) {
        kill(run->worker, signals[i]);
        int64_t until_ns = clock_now().monotonic_ns + (interrupt_count() > 1 ? HURRY_NS : FAREWELL_NS);
        while (run->worker != 0 && (i + 1 == count || clock_now().monotonic_ns < until_ns)) {
            if (waitpid(run->worker, NULL, WNOHANG) == run->worker)
                run->worker = 0;
            else
                nanosleep(&pause, NULL);
        }
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
    struct error err = {0};
    if (private_folder_make(&run->folder, &err) != 0)
        return command_fail("run", &err);
    snprintf(run->address, sizeof(run->address), "ipc://%s/coordinator", run->folder.path);
    serve->binds[0] = run->address;
    serve->binds[1] = run->bind;
    serve->own_worker = OWN_WORKER;
    int result = serve_load(serve, "run", options, what);
    /* The worker first: it starts while the database is made, and knocks until it is let in. */
    if (result == 0 && interrupt_count() == 0)
        result = start_worker(run, serve);
    if (result == 0)
        result = serve_open(serve);
    if (result != 0 && run->worker != 0)
        end_worker(run, serve);
    if (result == 0) {
        if (!options->quiet)
            print_start(run, serve);
        result = serve_run(serve, watch_worker, run);
        end_worker(run, serve);
        if (run->worker_failed)
            result = EXIT_RESOURCE;
        else if (result == EXIT_DONE || result == EXIT_UNRANKED) {
            int printed = print_leaderboard(run, serve);
            result = result == EXIT_DONE ? printed : result;
        }
    }
    private_folder_remove(&run->folder);
    return result;
}

/* Looked for once, before anything is begun. */
static int find_devices(struct run *run, const char *request, const struct serve_options *options)
{
    struct error err = {0}, why;
    struct device_description *devices;
    int count = devices_find(request, "/proc/self/exe", &devices, &why, &err);
    if (count < 0)
        return command_fail("run", &err);
    bool tell = why.message[0] && (why.code != ERROR_NONE || options->verbose);
    if (tell && !options->quiet)
        fprintf(stderr, "%s\n", why.message);
    run->devices = devices_request(devices, count);
    devices_free(devices, count);
    if (run->devices)
        return 0;
    error_set(&err, ERROR_MEMORY, "no memory");
    return command_fail("run", &err);
}

int command_run(int argc, char **argv)
{
    struct serve_options options;
    struct serve serve = {0};
    const char *devices = "auto";
    struct run run = {.bind = "tcp://127.0.0.1:0", .top = "10", .format = "table"};
    int code;
    interrupt_begin();
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
            devices = optarg;
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
    int result = find_devices(&run, devices, &options);
    if (result == 0)
        result = serve_sweep(&run, &serve, &options, what);
    serve_close(&serve);
    free(run.devices);
    return result;
}
