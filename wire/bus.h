/* What endpoints need of their bus; internal to wire/. */
#ifndef RUNG_WIRE_BUS_H
#define RUNG_WIRE_BUS_H

#include "wire/socket.h"

void *bus_context(const struct bus *bus);
const struct log *bus_log(const struct bus *bus);
const struct security *bus_security(const struct bus *bus); /* NULL: none */
/* Starts the thread that answers who may connect; must run before the first CURVE server binds, for ZeroMQ
 * lets everyone in where nobody answers. */
int bus_guard(struct bus *bus, struct error *err);
/* A number never used before on this bus. */
unsigned bus_next_number(struct bus *bus);

#endif
