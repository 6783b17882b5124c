/* The addresses of this machine. */
#include "cli/addresses.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ":PORT" of an address that stands for all interfaces; NULL: it names one. */
static const char *wildcard_port(const char *bound)
{
    static const char *const wildcards[] = {"tcp://0.0.0.0:", "tcp://*:", "tcp://[::]:"};
    for (size_t i = 0; i < sizeof wildcards / sizeof *wildcards; i++) {
        size_t size = strlen(wildcards[i]);
        if (strncmp(bound, wildcards[i], size) == 0) {
            return bound + size - 1;
        }
    }
    return NULL;
}

static bool is_reachable(const struct ifaddrs *interface)
{
    return interface->ifa_addr != NULL && interface->ifa_addr->sa_family == AF_INET &&
           (interface->ifa_flags & IFF_UP) != 0 && (interface->ifa_flags & IFF_LOOPBACK) == 0;
}

size_t addresses_usable(const char *bound, char (*addresses)[ADDRESS_SIZE], size_t limit)
{
    const char *port = wildcard_port(bound);
    if (port == NULL) {
        snprintf(addresses[0], ADDRESS_SIZE, "%s", bound);
        return 1;
    }
    size_t count = 0;
    struct ifaddrs *interfaces = NULL;
    if (getifaddrs(&interfaces) == 0) {
        for (const struct ifaddrs *each = interfaces; each != NULL && count < limit; each = each->ifa_next) {
            char host[INET_ADDRSTRLEN];
            if (is_reachable(each) &&
                inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)each->ifa_addr)->sin_addr,
                          host, sizeof host) != NULL) {
                snprintf(addresses[count++], ADDRESS_SIZE, "tcp://%s%s", host, port);
            }
        }
        freeifaddrs(interfaces);
    }
    if (count == 0) {
        char host[256] = "localhost";
        gethostname(host, sizeof host - 1);
        snprintf(addresses[count++], ADDRESS_SIZE, "tcp://%s%s", host, port);
    }
    return count;
}
