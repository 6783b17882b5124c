/* An endpoint's insides, shared by endpoint.c (its life and its messages) and connection.c (what its monitor
 * saw); internal to wire/. */
#ifndef RUNG_WIRE_ENDPOINT_H
#define RUNG_WIRE_ENDPOINT_H

#include "wire/address.h"
#include "wire/socket.h"

struct endpoint {
    struct bus *bus;
    void *socket, *monitor;
    bool router;
    enum connection_state state;
    int broken_handshakes;
    int64_t redial_ns; /* client: when to connect anew; 0: no need */
    int64_t logged_ns; /* server: when a failed handshake was logged last */
    char address[ADDRESS_LIMIT];
};

#endif
