/* rung runner DEVICE: the training child of a worker's slot. Not for people: it talks over an inherited
 * socket. Or what a worker asks it of GPUs: rung runner --describe cuda. */
#include "cli/command.h"
#include "worker/link.h"
#include "worker/runner.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

int command_runner(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--describe") == 0) {
        return runner_describe(argv[2]);
    }
    const char *text = getenv(LINK_FD_VARIABLE);
    char *end = NULL;
    long fd = text ? strtol(text, &end, 10) : -1;
    if (argc != 2 || !text || *end || end == text || fd < 0 || fcntl((int)fd, F_GETFD) < 0) {
        return command_usage_error("runner", "started by 'rung worker' only");
    }
    unsetenv(LINK_FD_VARIABLE);
    return runner_main((int)fd, argv[1]);
}
