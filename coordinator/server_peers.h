/* Peers: who sent a message, as the number that the engine knows them by. A number stands for one routing id
 * of one socket and is never used again in this process. */
#ifndef RUNG_COORDINATOR_SERVER_PEERS_H
#define RUNG_COORDINATOR_SERVER_PEERS_H

#include "coordinator/engine.h"
#include "wire/socket.h"

#include <stddef.h>
#include <stdint.h>

struct peer_address {
    struct peer peer;
    uint8_t socket; /* index of the socket it came by */
};

struct peers {
    struct peer_address *addresses; /* addresses[i] belongs to number i + 1 */
    size_t count, capacity;
    uint64_t *table;   /* open addressing: numbers, 0 = free */
    size_t table_size; /* a power of two */
};

void peers_init(struct peers *peers);
void peers_release(struct peers *peers);
/* The number of a peer, given on first sight; 0: no memory. */
peer_number peers_number(struct peers *peers, uint8_t socket, const struct peer *peer);
/* Borrowed until the next new peer; NULL: no such number. */
const struct peer_address *peers_address(const struct peers *peers, peer_number number);

#endif
