/* Time as two numbers. */
#include "base/clock.h"

#include <stdio.h>
#include <time.h>

struct now clock_now(void)
{
    struct timespec monotonic, real;
    clock_gettime(CLOCK_MONOTONIC, &monotonic);
    clock_gettime(CLOCK_REALTIME, &real);
    return (struct now){
        .monotonic_ns = monotonic.tv_sec * NS_PER_SECOND + monotonic.tv_nsec,
        .utc_ms = real.tv_sec * 1000LL + real.tv_nsec / NS_PER_MS,
    };
}

/* Whole seconds, rounded down also before 1970, and the milliseconds left. */
static time_t split_ms(int64_t utc_ms, int *milliseconds)
{
    int64_t seconds = utc_ms / 1000;
    int64_t rest = utc_ms % 1000;
    if (rest < 0) {
        rest += 1000;
        seconds--;
    }
    *milliseconds = (int)rest;
    return (time_t)seconds;
}

char *clock_format_utc(int64_t utc_ms, char *buffer, size_t size)
{
    int milliseconds;
    time_t seconds = split_ms(utc_ms, &milliseconds);
    struct tm tm = {0};
    gmtime_r(&seconds, &tm);
    snprintf(buffer, size, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", tm.tm_year + 1900, tm.tm_mon + 1,
             tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, milliseconds);
    return buffer;
}

char *clock_format_local(int64_t utc_ms, char *buffer, size_t size)
{
    int milliseconds;
    time_t seconds = split_ms(utc_ms, &milliseconds);
    struct tm tm = {0};
    localtime_r(&seconds, &tm);
    snprintf(buffer, size, "%04d-%02d-%02d %02d:%02d:%02d", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday,
             tm.tm_hour, tm.tm_min, tm.tm_sec);
    return buffer;
}
