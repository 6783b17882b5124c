/* Options of a command, and what is said about wrong ones. */
#include "cli/options.h"

#include "base/text.h"
#include "cli/command.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define OPTIONS_LIMIT 40 /* of one command */

void options_start(void)
{
    optind = 0; /* glibc: start again in full; a command may call another */
}

/* The table's name for a code; NULL: none. */
static const char *option_name(const struct option *table, int code)
{
    for (; table->name; table++)
        if (table->val == code)
            return table->name;
    return NULL;
}

/* Unknown, or the start of several: "--se" of --server-key and --set. */
static void tell_unknown(const char *command, const char *word, const struct option *table)
{
    const char *names[OPTIONS_LIMIT + 1];
    size_t count = 0, size = strcspn(word, "=");
    struct text meant;
    text_init(&meant);
    for (; table->name && count < OPTIONS_LIMIT; table++) {
        names[count++] = table->name;
        if (size > 2 && strncmp(table->name, word + 2, size - 2) == 0)
            text_printf(&meant, "%s--%s", meant.size > 0 ? ", " : "", table->name);
    }
    names[count] = NULL;
    char *name = strndup(word + 2, size - 2);
    const char *nearest = name ? nearest_word(name, names) : NULL;
    if (meant.size > 0)
        command_usage_error(command, "'%.*s' is the start of several options: %s", (int)size, word,
                            meant.data);
    else
        command_usage_error(command, "unknown option '%.*s'%s%s%s", (int)size, word,
                            nearest ? "; did you mean '--" : "", nearest ? nearest : "", nearest ? "'?" : "");
    text_release(&meant);
    free(name);
}

int options_next(const char *command, int argc, char **argv, const struct option *table)
{
    char letters[OPTIONS_LIMIT] = ":"; /* a missing value is told apart from an unknown option */
    size_t count = 1;
    for (const struct option *option = table; option->name; option++)
        if (option->val < 128 && isalpha(option->val) && count < sizeof letters - 1)
            letters[count++] = (char)option->val;
    opterr = 0;
    int code = getopt_long(argc, argv, letters, table, NULL);
    if (code != '?' && code != ':')
        return code;
    const char *name = optopt ? option_name(table, optopt) : NULL;
    if (name && code == ':')
        command_usage_error(command, "option '--%s' takes a value", name);
    else if (name)
        command_usage_error(command, "option '--%s' takes no value", name);
    else if (optopt)
        command_usage_error(command, "unknown option '-%c'", optopt);
    else
        tell_unknown(command, argv[optind - 1], table);
    return '?';
}
