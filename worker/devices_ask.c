/* GPUs as a short-lived child sees them. CUDA in this process would keep memory of each GPU, and could not be
 * got rid of after an error. */
#include "worker/devices.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Drivers take up to some seconds on machines with many GPUs and no persistence. */
#define PATIENCE_NS (60 * NS_PER_SECOND)
#define ANSWER_LIMIT (1 << 20)

static pid_t child_spawn(const char *program, const char *kind, int output, struct error *err)
{
    char *argv[] = {(char *)program, "runner", "--describe", (char *)kind, NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid = -1;
    posix_spawn_file_actions_init(&actions);
    int result = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    result = result ? result : posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    result =
        result ? result : posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    result = result ? result : posix_spawn(&pid, program, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (result != 0) {
        error_set(err, ERROR_RESOURCE, "look for %s devices: %s", kind, strerror(result));
        return -1;
    }
    return pid;
}

/* All it prints, until it closes its end. -1: it takes too long. */
static int answer_read(int fd, struct text *answer)
{
    int64_t deadline = clock_now().monotonic_ns + PATIENCE_NS;
    char buffer[4096];
    for (;;) {
        int64_t left_ms = (deadline - clock_now().monotonic_ns) / NS_PER_MS;
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        if (left_ms <= 0 || answer->size > ANSWER_LIMIT) {
            return -1;
        }
        if (poll(&wait, 1, (int)left_ms) < 1) {
            continue;
        }
        ssize_t count = read(fd, buffer, sizeof buffer);
        if (count == 0 || (count < 0 && errno != EINTR)) {
            return 0;
        }
        if (count > 0) {
            text_append_bytes(answer, buffer, (size_t)count);
        }
    }
}

static void child_end(pid_t pid, bool kill_it, int *status)
{
    if (kill_it) {
        kill(pid, SIGKILL);
    }
    while (waitpid(pid, status, 0) < 0 && errno == EINTR) {
    }
}

static json_t *answer_take(const struct text *answer, const char *kind, int status, struct error *err)
{
    json_t *object = answer->size > 0 ? json_parse(answer->data, answer->size, NULL) : NULL;
    json_t *devices = json_object_get(object, "devices");
    const char *reason = json_get_string(object, "error", NULL);
    if (json_is_array(devices)) {
        json_incref(devices);
    } else if (reason) {
        error_set(err, ERROR_RESOURCE, "%s", reason);
    } else if (WIFSIGNALED(status)) {
        error_set(err, ERROR_RESOURCE, "looking for %s devices was ended by signal %d (%s)", kind,
                  WTERMSIG(status), strsignal(WTERMSIG(status)));
    } else {
        error_set(err, ERROR_RESOURCE, "looking for %s devices ended with code %d", kind,
                  WEXITSTATUS(status));
    }
    json_decref(object);
    return devices;
}

json_t *devices_ask(const char *program, const char *kind, struct error *err)
{
    int ends[2], status = 0;
    struct text answer;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        error_set(err, ERROR_RESOURCE, "look for %s devices: %s", kind, strerror(errno));
        return NULL;
    }
    pid_t pid = child_spawn(program, kind, ends[1], err);
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return NULL;
    }
    text_init(&answer);
    bool late = answer_read(ends[0], &answer) != 0;
    child_end(pid, late, &status);
    close(ends[0]);
    json_t *devices = NULL;
    if (late) {
        error_set(err, ERROR_RESOURCE, "looking for %s devices took longer than %d s", kind,
                  (int)(PATIENCE_NS / NS_PER_SECOND));
    } else {
        devices = answer_take(&answer, kind, status, err);
    }
    text_release(&answer);
    return devices;
}
