/* Starting, listening to and ending a runner process. */
#include "worker/child.h"

#include "base/text.h"
#include "worker/link.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILD_LINK_FD 3 /* the first after the standard ones, in the child */

extern char **environ;

/* A CPU device is one thread: several runners must not each start a thread per core. */
static const char *const child_variables[] = {
    LINK_FD_VARIABLE "=3", "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1", "MKL_NUM_THREADS=1", NULL,
};

void child_init(struct child *child)
{
    memset(child, 0, sizeof *child);
    child->link_fd = -1;
    child->log_fd = -1;
}

static bool is_child_variable(const char *entry)
{
    for (size_t i = 0; child_variables[i]; i++) {
        size_t name = strcspn(child_variables[i], "=") + 1;
        if (strncmp(entry, child_variables[i], name) == 0) {
            return true;
        }
    }
    return false;
}

/* The environment with our variables in it; entries are borrowed, free() the array. */
static const char **child_environment(void)
{
    size_t count = 0;
    while (environ[count]) {
        count++;
    }
    const char **result = calloc(count + sizeof child_variables / sizeof *child_variables, sizeof *result);
    if (!result) {
        return NULL;
    }
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (!is_child_variable(environ[i])) {
            result[used++] = environ[i];
        }
    }
    for (size_t i = 0; child_variables[i]; i++) {
        result[used++] = child_variables[i];
    }
    return result;
}

/* Between fork and exec only async-signal-safe calls: the agent's process has threads (ZeroMQ's). */
static void child_become(const char *const *argv, const char *const *environment, pid_t parent, int link,
                         int log)
{
    static const char failed[] = "rung: cannot start the runner program\n";
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(127); /* the agent died before the request took hold */
    }
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    /* Out of the way of 0..3 first, so that no dup2 overwrites a descriptor still needed. */
    link = fcntl(link, F_DUPFD, CHILD_LINK_FD + 1);
    log = fcntl(log, F_DUPFD, CHILD_LINK_FD + 1);
    int null = open("/dev/null", O_RDONLY);
    if (link < 0 || log < 0 || null < 0 || dup2(null, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0 ||
        dup2(link, CHILD_LINK_FD) < 0) {
        _exit(127);
    }
    close(link);
    close(log);
    if (null > CHILD_LINK_FD) {
        close(null);
    }
    execve(argv[0], (char *const *)argv, (char *const *)environment);
    ssize_t ignored = write(2, failed, sizeof failed - 1);
    (void)ignored;
    _exit(127);
}

static void close_pair(int pair[2])
{
    for (int i = 0; i < 2; i++) {
        if (pair[i] >= 0) {
            close(pair[i]);
        }
    }
}

int child_start(struct child *child, const char *const *argv, struct error *err)
{
    int link[2] = {-1, -1}, log[2] = {-1, -1};
    pid_t pid = -1;
    const char **environment = child_environment();
    if (!child->log) {
        child->log = malloc(CHILD_LOG_SIZE);
    }
    if (!environment || !child->log) {
        free(environment);
        return error_set(err, ERROR_MEMORY, "start a runner: no memory");
    }
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, link) == 0 && pipe2(log, O_CLOEXEC) == 0) {
        pid_t parent = getpid();
        pid = fork();
        if (pid == 0) {
            child_become(argv, environment, parent, link[1], log[1]);
        }
    }
    int reason = errno;
    free(environment);
    if (pid < 0) {
        close_pair(link);
        close_pair(log);
        return error_set(err, ERROR_RESOURCE, "start a runner: %s", strerror(reason));
    }
    setpgid(pid, pid); /* here too: whoever comes first, the group exists before anything is killed */
    close(link[1]);
    close(log[1]);
    fcntl(link[0], F_SETFL, O_NONBLOCK);
    fcntl(log[0], F_SETFL, O_NONBLOCK);
    child->pid = pid;
    child->link_fd = link[0];
    child->log_fd = log[0];
    child->killed = false;
    child->log_total = 0;
    return 0;
}

static void child_keep_log(struct child *child, const char *bytes, size_t count)
{
    for (size_t i = 0; i < count;) {
        size_t at = child->log_total % CHILD_LOG_SIZE;
        size_t part = count - i < CHILD_LOG_SIZE - at ? count - i : CHILD_LOG_SIZE - at;
        memcpy(child->log + at, bytes + i, part);
        child->log_total += part;
        i += part;
    }
}

void child_read_log(struct child *child)
{
    char buffer[4096];
    /* Bounded, so that a runner that prints without end cannot hold the agent. */
    for (int turn = 0; turn < 64 && child->log_fd >= 0; turn++) {
        ssize_t count = read(child->log_fd, buffer, sizeof buffer);
        if (count > 0) {
            child_keep_log(child, buffer, (size_t)count);
        } else if (count == 0) {
            close(child->log_fd);
            child->log_fd = -1;
        } else if (errno != EINTR) {
            return;
        }
    }
}

void child_clear_log(struct child *child)
{
    child->log_total = 0;
}

char *child_log_end(const struct child *child, size_t limit)
{
    size_t size = child->log_total < CHILD_LOG_SIZE ? child->log_total : CHILD_LOG_SIZE;
    size = size < limit ? size : limit;
    char *bytes = malloc(size + 1);
    if (!bytes) {
        return NULL;
    }
    for (size_t i = 0; i < size; i++) {
        bytes[i] = child->log[(child->log_total - size + i) % CHILD_LOG_SIZE];
    }
    while (size > 0 && (bytes[size - 1] == '\n' || bytes[size - 1] == ' ' || bytes[size - 1] == '\0')) {
        size--;
    }
    char *text = utf8_repair(bytes, size);
    free(bytes);
    return text;
}

void child_kill(struct child *child)
{
    if (child->pid > 0) {
        child->killed = true;
        if (kill(-child->pid, SIGKILL) != 0) {
            kill(child->pid, SIGKILL);
        }
    }
}

void child_close(struct child *child)
{
    child_read_log(child);
    if (child->link_fd >= 0) {
        close(child->link_fd);
    }
    if (child->log_fd >= 0) {
        close(child->log_fd);
    }
    child->link_fd = -1;
    child->log_fd = -1;
}

bool child_has_ended(struct child *child, int *status)
{
    if (child->pid <= 0) {
        return false;
    }
    pid_t pid = waitpid(child->pid, status, WNOHANG);
    if (pid == 0 || (pid < 0 && errno == EINTR)) {
        return false;
    }
    if (pid < 0) {
        *status = 0; /* someone else reaped it (SIGCHLD ignored): gone all the same */
    }
    kill(-child->pid, SIGKILL); /* what it may have started */
    child->pid = 0;
    return true;
}

void child_release(struct child *child)
{
    if (child->pid > 0) {
        child_kill(child);
        while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR) {
        }
        child->pid = 0;
    }
    child_close(child);
    free(child->log);
    child->log = NULL;
}
