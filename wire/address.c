/* What is an address, and what is none. */
#include "wire/address.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#define TCP "tcp://"
#define IPC "ipc://"
#define LARGEST_PORT 65535

static int refuse(const char *address, const char *why, struct error *err)
{
    return error_set(err, ERROR_USAGE, "\"%.80s\" is not an address (tcp://HOST:PORT or ipc://PATH): %s",
                     address, why);
}

static bool is_printable(const char *text)
{
    while (isgraph((unsigned char)*text) || (unsigned char)*text >= 0x80) {
        text++;
    }
    return *text == '\0';
}

/* [0-9a-f:.] with an optional %zone, in brackets. */
static bool is_bracketed(const char *host, size_t size)
{
    if (size < 4 || host[0] != '[' || host[size - 1] != ']') {
        return false;
    }
    size_t digits = strspn(host + 1, "0123456789abcdefABCDEF:.");
    return memchr(host, ':', size) && (host[1 + digits] == ']' || host[1 + digits] == '%') &&
           !memchr(host + 1, '[', size - 1) && memchr(host, ']', size) == host + size - 1;
}

static int check_host(const char *address, const char *host, size_t size, bool binds, struct error *err)
{
    if (size == 0) {
        return refuse(address, "the host is missing", err);
    }
    if (memchr(host, '/', size) || memchr(host, ';', size) || memchr(host, '@', size)) {
        return refuse(address, "there is more in it than a host and a port", err);
    }
    if (memchr(host, '[', size) || memchr(host, ']', size)) {
        return is_bracketed(host, size) ? 0 : refuse(address, "an IPv6 address is written [::1]", err);
    }
    if (memchr(host, ':', size)) {
        return refuse(address, "an IPv6 address goes into brackets: tcp://[::1]:PORT", err);
    }
    if (size == 1 && host[0] == '*' && !binds) {
        return refuse(address, "* is a host to listen at, not one to connect to", err);
    }
    return 0;
}

static int check_port(const char *address, const char *port, bool binds, struct error *err)
{
    size_t digits = strspn(port, "0123456789");
    if (*port == '\0') {
        return refuse(address, "the port is missing", err);
    }
    if (binds && strcmp(port, "*") == 0) {
        return 0;
    }
    if (port[digits] != '\0') {
        return refuse(address, "the port is not a number", err);
    }
    if (digits > 9 || strtol(port, NULL, 10) > LARGEST_PORT) {
        return refuse(address, "ports end at 65535", err);
    }
    if (!binds && strtol(port, NULL, 10) == 0) {
        return refuse(address, "0 is a port to listen at, not one to connect to", err);
    }
    return 0;
}

static int check_tcp(const char *address, bool binds, struct error *err)
{
    const char *host = address + strlen(TCP), *colon = strrchr(host, ':'), *bracket = strrchr(host, ']');
    if (!colon || (bracket && bracket > colon)) {
        return refuse(address, "the port is missing", err);
    }
    int result = check_host(address, host, (size_t)(colon - host), binds, err);
    return result ? result : check_port(address, colon + 1, binds, err);
}

static int check_ipc(const char *address, struct error *err)
{
    const char *path = address + strlen(IPC);
    if (*path == '\0') {
        return refuse(address, "the path is missing", err);
    }
    /* The blob socket's path is this one with "-blobs". */
    if (strlen(path) + strlen("-blobs") >= sizeof((struct sockaddr_un *)NULL)->sun_path) {
        return refuse(address, "the path of a socket has at most 101 bytes", err);
    }
    return 0;
}

static int check(const char *address, bool binds, struct error *err)
{
    bool tcp = strncmp(address, TCP, strlen(TCP)) == 0;
    if (!tcp && strncmp(address, IPC, strlen(IPC)) != 0) {
        return error_set(err, ERROR_USAGE, "\"%.80s\" is not an address (tcp://HOST:PORT or ipc://PATH)",
                         address);
    }
    if (strlen(address) >= ADDRESS_LIMIT) {
        return error_set(err, ERROR_USAGE, "the address \"%.64s...\" is too long", address);
    }
    if (tcp && !is_printable(address)) {
        return refuse(address, "there are blanks or control characters in it", err);
    }
    return tcp ? check_tcp(address, binds, err) : check_ipc(address, err);
}

int address_check_bind(const char *address, struct error *err)
{
    return check(address, true, err);
}

int address_check_connect(const char *address, struct error *err)
{
    return check(address, false, err);
}
