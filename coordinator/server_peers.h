/* Peers: who sent a message, as the number that the engine knows them by. A number stands for one routing id
 * of one socket and is never used again in this process. Clients come and go: when there is no room, those
 * that have been silent for long are forgotten first. One that speaks again gets a new number, and is asked
 * to say hello. */
#ifndef RUNG_COORDINATOR_SERVER_PEERS_H
#define RUNG_COORDINATOR_SERVER_PEERS_H

#include "coordinator/engine.h"
#include "wire/socket.h"

#include <stddef.h>
#include <stdint.h>

struct peer_address {
    struct peer peer;
    uint8_t socket;   /* index of the socket it came by */
    bool is_used;     /* false: the place is free */
    uint32_t changes; /* how many peers had this place before */
    int64_t heard_ns;
};

struct peers {
    int64_t silence_ns;             /* longer than this: forgotten when room is needed */
    struct peer_address *addresses; /* number = changes << 32 | index + 1 */
    size_t count, capacity;         /* count: places in use */
    uint32_t *table;                /* open addressing: index + 1, 0 = free */
    size_t table_size;              /* a power of two */
};

void peers_init(struct peers *peers, int64_t silence_ns);
void peers_release(struct peers *peers);
/* The number of a peer that speaks now, given on first sight; 0: no memory. */
peer_number peers_number(struct peers *peers, uint8_t socket, const struct peer *peer, int64_t now_ns);
/* Borrowed until the next new peer; NULL: no such number (any more). */
const struct peer_address *peers_address(const struct peers *peers, peer_number number);

#endif
