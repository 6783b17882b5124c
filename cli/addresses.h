/* Addresses as other machines can use them: a socket bound to 0.0.0.0 listens on all of this machine's, but
 * nobody can connect to "0.0.0.0". */
#ifndef RUNG_CLI_ADDRESSES_H
#define RUNG_CLI_ADDRESSES_H

#include <stddef.h>

#define ADDRESS_SIZE 320

/* The addresses at which the bound one ("tcp://0.0.0.0:7155") can be reached: those of this machine's
 * interfaces but the loopback, or its host name where it has none; any other address as it is. Returns how
 * many, at least 1 and at most `limit`. */
size_t addresses_usable(const char *bound, char (*addresses)[ADDRESS_SIZE], size_t limit);

#endif
