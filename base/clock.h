/* Time as two numbers: monotonic for deadlines, UTC milliseconds for records. Only callers at the edge
 * (server, agent, cli) read clocks; pure code gets a `struct now` handed in. */
#ifndef RUNG_BASE_CLOCK_H
#define RUNG_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

struct now {
    int64_t monotonic_ns;
    int64_t utc_ms;
};

#define NS_PER_MS 1000000LL
#define NS_PER_SECOND 1000000000LL

struct now clock_now(void);

/* "2026-01-02T03:04:05.678Z"; buffer of at least 32 bytes; returns buffer. */
char *clock_format_utc(int64_t utc_ms, char *buffer, size_t size);
/* "2026-01-02 03:04:05" in local time, for screens only. */
char *clock_format_local(int64_t utc_ms, char *buffer, size_t size);

#endif
