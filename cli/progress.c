/* Progress: what is done, what runs, the best so far. */
#include "cli/progress.h"

#include "base/clock.h"
#include "cli/check_report.h"
#include "cli/listing.h"

#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BAR_WIDTH 24
/* Elsewhere than on a terminal: a line at most this often, unless the best trial changed. */
#define PLAIN_INTERVAL_NS (5 * NS_PER_SECOND)
#define PLAIN_BEST_INTERVAL_NS (1 * NS_PER_SECOND)

void progress_init(struct progress *progress, const char *metric, const struct stopping_settings *stopping,
                   bool quiet)
{
    memset(progress, 0, sizeof(*progress));
    progress->terminal = isatty(STDERR_FILENO) == 1;
    progress->quiet = quiet;
    progress->started_ns = clock_now().monotonic_ns;
    progress->printed_ns = progress->started_ns;
    progress->printed_ended = -1;
    progress->child_fd = -1;
    progress->metric = metric;
    progress->rungs = stopping->kind != STOPPING_NONE;
    progress->expected = plan_resource(stopping);
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

/* One thing that is said about the sweep; where not all fit, those with the smallest weight go first. */
struct part {
    char text[160];
    int weight;
};

#define PARTS 12
#define BAR_LEAST 8  /* a narrower bar shows nothing */
#define BAR_FRAME 3  /* brackets, and the blank behind them */
#define BAR_WEIGHT 4 /* parts of less give way to it */
#define SEPARATOR 2  /* ", " */

struct line {
    struct part parts[PARTS];
    size_t count;
};

__attribute__((format(printf, 3, 4))) static void add(struct line *line, int weight, const char *format, ...)
{
    struct part *part = &line->parts[line->count++];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(part->text, sizeof(part->text), format, arguments);
    va_end(arguments);
    part->weight = weight;
}

/* Rungs hold most trials back until the end, so that there it is trials begun and epochs that move. */
static void add_trials(struct line *line, const struct progress *progress, const struct engine_counts *counts)
{
    bool rungs = progress->rungs && ended_trials(counts) < counts->proposed;
    char total[32] = "";
    if (counts->total >= 0)
        snprintf(total, sizeof(total), "/%" PRId64, counts->total);
    add(line, 9, "%" PRId64 "%s trials%s", rungs ? counts->proposed : ended_trials(counts), total,
        rungs ? " begun" : "");
    if (counts->failed > 0)
        add(line, 7, "%" PRId64 " failed", counts->failed);
    if (progress->rungs)
        add(line, 4, "%.0f epoch%s", counts->resource_done, counts->resource_done == 1 ? "" : "s");
}

static void add_best(struct line *line, const struct progress *progress, const struct engine_counts *counts,
                     bool brief)
{
    if (counts->best_trial == 0)
        return;
    const char *metric = progress->metric ? progress->metric : "objective";
    add(line, 8, "best %s%s%.5g (trial %" PRId64 ")", brief ? "" : metric, brief ? "" : " ",
        counts->best_objective, counts->best_trial);
}

static void describe(struct line *line, const struct progress *progress, const struct engine_counts *counts,
                     bool brief)
{
    char elapsed[32];
    line->count = 0;
    add_trials(line, progress, counts);
    if (counts->running > 0)
        add(line, 3, "%" PRId64 " running", counts->running);
    if (counts->paused > 0)
        add(line, 1, "%" PRId64 " paused", counts->paused);
    if (counts->workers > 0 || counts->state < SWEEP_FINISHED)
        add(line, 2, "%" PRId64 " worker%s", counts->workers, counts->workers == 1 ? "" : "s");
    add_best(line, progress, counts, brief);
    if (counts->refitting)
        add(line, 7, "training the winner again");
    if (counts->state == SWEEP_PAUSED)
        add(line, 7, "paused by an operator: rung resume");
    format_elapsed(clock_now().monotonic_ns - progress->started_ns, elapsed, sizeof(elapsed));
    add(line, 6, "%s", elapsed);
}

static int line_width(const struct line *line)
{
    int width = 0;
    for (size_t i = 0; i < line->count; i++)
        width += text_width(line->parts[i].text, strlen(line->parts[i].text)) + (i > 0 ? SEPARATOR : 0);
    return width;
}

static void drop_lightest(struct line *line)
{
    size_t lightest = 0;
    for (size_t i = 1; i < line->count; i++)
        if (line->parts[i].weight < line->parts[lightest].weight)
            lightest = i;
    memmove(&line->parts[lightest], &line->parts[lightest + 1],
            (line->count - lightest - 1) * sizeof(line->parts[0]));
    line->count--;
}

static int lightest_weight(const struct line *line)
{
    int weight = INT_MAX;
    for (size_t i = 0; i < line->count; i++)
        weight = line->parts[i].weight < weight ? line->parts[i].weight : weight;
    return weight;
}

/* The parts that fit `width` columns (0: all); the metric's name goes before whole parts do. `bar`: columns
 * that small parts leave free for it. */
static void fit(struct line *line, const struct progress *progress, const struct engine_counts *counts,
                int width, int bar)
{
    describe(line, progress, counts, false);
    if (width > 0 && line_width(line) + bar > width)
        describe(line, progress, counts, true);
    while (width > 0 && line->count > 1 && line_width(line) + bar > width) {
        bar = lightest_weight(line) < BAR_WEIGHT ? bar : 0;
        if (line_width(line) + bar > width)
            drop_lightest(line);
    }
}

static void append_line(struct text *text, const struct line *line)
{
    for (size_t i = 0; i < line->count; i++)
        text_printf(text, "%s%s", i > 0 ? ", " : "", line->parts[i].text);
}

/* From 0 to 1. What ASHA trains is known only roughly beforehand: it is not done before it ends. */
static double fraction_done(const struct progress *progress, const struct engine_counts *counts)
{
    double ended = (double)ended_trials(counts) / (double)counts->total;
    double trained = progress->expected > 0 ? counts->resource_done / progress->expected : 0;
    double done = ended > trained ? ended : trained;
    return ended < 1 && done > 0.98 ? 0.98 : done;
}

static void append_bar(struct text *text, double done, int width)
{
    int filled = (int)(width * done);
    text_append(text, "[");
    for (int i = 0; i < width; i++)
        text_append(text, i < filled ? "=" : i == filled ? ">" : " ");
    text_append(text, "] ");
}

void progress_describe(const struct progress *progress, const struct engine_counts *counts, int width,
                       struct text *text)
{
    struct line line;
    bool bar = counts->total > 0;
    fit(&line, progress, counts, width, bar ? BAR_LEAST + BAR_FRAME : 0);
    int room = width > 0 ? width - line_width(&line) - BAR_FRAME : BAR_WIDTH;
    if (bar && room >= BAR_LEAST)
        append_bar(text, fraction_done(progress, counts), room < BAR_WIDTH ? room : BAR_WIDTH);
    append_line(text, &line);
}

/* The last column stays free: some terminals wrap as soon as it is written. */
static int live_width(void)
{
    int width = terminal_width(STDERR_FILENO);
    return width > 1 ? width - 1 : 0;
}

static void draw(struct progress *progress, const struct engine_counts *counts)
{
    struct text text;
    text_init(&text);
    progress_describe(progress, counts, live_width(), &text);
    if (text.data)
        fprintf(stderr, "\r\033[K%s", text.data);
    fflush(stderr);
    progress->drawn = true;
    text_release(&text);
}

static void print_plain(struct progress *progress, const struct engine_counts *counts)
{
    struct text text;
    struct line line;
    text_init(&text);
    fit(&line, progress, counts, progress->terminal ? live_width() : 0, 0);
    append_line(&text, &line);
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
