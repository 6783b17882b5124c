/* Addresses: tcp://HOST:PORT and ipc://PATH, looked at before ZeroMQ sees them, which takes ports modulo
 * 65,536 and reads more than addresses out of them. Pure. */
#ifndef RUNG_WIRE_ADDRESS_H
#define RUNG_WIRE_ADDRESS_H

#include "base/error.h"

#define ADDRESS_LIMIT 256

/* To listen at: HOST may be *, PORT 0 or * for any free one. ERROR_USAGE says what is wrong. */
int address_check_bind(const char *address, struct error *err);
/* To connect to. */
int address_check_connect(const char *address, struct error *err);

#endif
