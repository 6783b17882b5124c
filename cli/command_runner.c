/* rung runner DEVICE: the training child of a worker's slot. Not for people: it talks over an inherited
 * socket. */
#include "cli/command.h"
#include "worker/link.h"
#include "worker/runner.h"

#include <fcntl.h>
#include <stdlib.h>

int command_runner(int argc, char **argv)
{
    const char *text = getenv(LINK_FD_VARIABLE);
    char *end = NULL;
    long fd = text ? strtol(text, &end, 10) : -1;
    if (argc != 2 || !text || *end || end == text || fd < 0 || fcntl((int)fd, F_GETFD) < 0) {
        return command_usage_error("runner", "started by 'rung worker' only");
    }
    unsetenv(LINK_FD_VARIABLE);
    return runner_main((int)fd, argv[1]);
}
