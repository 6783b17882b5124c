/* Progress: what is done, what runs, the best so far. */
#include "cli/progress.h"

#include "base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BAR_WIDTH 24
/* Elsewhere than on a terminal: a line at most this often, unless the best trial changed. */
#define PLAIN_INTERVAL_NS (5 * NS_PER_SECOND)
#define PLAIN_BEST_INTERVAL_NS (1 * NS_PER_SECOND)

void progress_init(struct progress *progress, const char *metric, bool quiet)
{
    memset(progress, 0, sizeof(*progress));
    progress->terminal = isatty(STDERR_FILENO) == 1;
    progress->quiet = quiet;
    progress->started_ns = clock_now().monotonic_ns;
    progress->printed_ns = progress->started_ns;
    progress->printed_ended = -1;
    progress->child_fd = -1;
    progress->metric = metric;
    text_init(&progress->child_line);
}

void progress_release(struct progress *progress)
{
    text_release(&progress->child_line);
}

static void erase(struct progress *progress)
{
    if (progress->drawn)
        fputs("\r\033[K", stderr);
    progress->drawn = false;
}

void progress_line(struct progress *progress, const char *line)
{
    erase(progress);
    fprintf(stderr, "%s\n", line);
}

void progress_log(void *user, enum log_level level, const char *line)
{
    (void)level;
    size_t size = strlen(line);
    struct progress *progress = user;
    erase(progress);
    fputs(line, stderr);
    if (size == 0 || line[size - 1] != '\n')
        fputc('\n', stderr);
}

/* Whole lines of the child go out; an unfinished one waits for its end. */
static void forward_child(struct progress *progress)
{
    char buffer[4096];
    ssize_t got;
    while (progress->child_fd >= 0 && (got = read(progress->child_fd, buffer, sizeof(buffer))) > 0) {
        for (ssize_t i = 0; i < got; i++) {
            if (buffer[i] != '\n') {
                text_append_bytes(&progress->child_line, &buffer[i], 1);
                continue;
            }
            char *line = text_steal(&progress->child_line);
            if (line)
                progress_line(progress, line);
            free(line);
        }
    }
}

static int64_t ended_trials(const struct engine_counts *counts)
{
    return counts->completed + counts->stopped + counts->failed + counts->cancelled;
}

/* "13.2 s", "4:07", "1:02:03" */
static void format_elapsed(int64_t ns, char *buffer, size_t size)
{
    int64_t seconds = ns / NS_PER_SECOND;
    if (seconds < 60)
        snprintf(buffer, size, "%.1f s", (double)ns / NS_PER_SECOND);
    else if (seconds < 3600)
        snprintf(buffer, size, "%" PRId64 ":%02" PRId64, seconds / 60, seconds % 60);
    else
        snprintf(buffer, size, "%" PRId64 ":%02" PRId64 ":%02" PRId64, seconds / 3600, seconds / 60 % 60,
                 seconds % 60);
}

static void describe(const struct progress *progress, const struct engine_counts *counts, struct text *text)
{
    char number[NUMBER_SIZE], elapsed[32];
    text_printf(text, "%" PRId64, ended_trials(counts));
    if (counts->total >= 0)
        text_printf(text, "/%" PRId64, counts->total);
    text_append(text, " trials");
    if (counts->failed > 0)
        text_printf(text, " (%" PRId64 " failed)", counts->failed);
    text_printf(text, ", %" PRId64 " running", counts->running);
    if (counts->paused > 0)
        text_printf(text, ", %" PRId64 " paused", counts->paused);
    text_printf(text, ", %" PRId64 " worker%s", counts->workers, counts->workers == 1 ? "" : "s");
    if (counts->best_trial > 0) {
        snprintf(number, sizeof(number), "%.5g", counts->best_objective);
        text_printf(text, ", best %s %s (trial %" PRId64 ")",
                    progress->metric ? progress->metric : "objective", number, counts->best_trial);
    }
    if (counts->refitting)
        text_append(text, ", training the winner again");
    if (counts->state == SWEEP_PAUSED)
        text_append(text, ", paused");
    format_elapsed(clock_now().monotonic_ns - progress->started_ns, elapsed, sizeof(elapsed));
    text_printf(text, ", %s", elapsed);
}

static void draw(struct progress *progress, const struct engine_counts *counts)
{
    struct text text;
    text_init(&text);
    if (counts->total > 0) {
        int filled = (int)(BAR_WIDTH * ended_trials(counts) / counts->total);
        text_append(&text, "[");
        for (int i = 0; i < BAR_WIDTH; i++)
            text_append(&text, i < filled ? "=" : i == filled ? ">" : " ");
        text_append(&text, "] ");
    }
    describe(progress, counts, &text);
    if (text.data)
        fprintf(stderr, "\r\033[K%s", text.data);
    fflush(stderr);
    progress->drawn = true;
    text_release(&text);
}

static void print_plain(struct progress *progress, const struct engine_counts *counts)
{
    struct text text;
    text_init(&text);
    describe(progress, counts, &text);
    if (text.data)
        fprintf(stderr, "%s\n", text.data);
    text_release(&text);
    progress->printed_ns = clock_now().monotonic_ns;
    progress->printed_ended = ended_trials(counts);
    progress->printed_best = counts->best_trial;
}

void progress_update(struct progress *progress, const struct engine_counts *counts)
{
    forward_child(progress);
    progress->counts = *counts;
    if (progress->quiet)
        return;
    if (progress->terminal) {
        draw(progress, counts);
        return;
    }
    int64_t waited = clock_now().monotonic_ns - progress->printed_ns;
    bool changed = ended_trials(counts) != progress->printed_ended;
    if ((waited >= PLAIN_INTERVAL_NS && changed) ||
        (waited >= PLAIN_BEST_INTERVAL_NS && counts->best_trial != progress->printed_best))
        print_plain(progress, counts);
}

void progress_end(struct progress *progress)
{
    forward_child(progress);
    erase(progress);
    if (!progress->quiet)
        print_plain(progress, &progress->counts);
}
