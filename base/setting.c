/* A table of settings ends with an entry without a name. */
#include "base/setting.h"

#include <string.h>

const struct setting *setting_find(const struct setting *table, const char *name)
{
    for (; table->name; table++) {
        if (strcmp(table->name, name) == 0)
            return table;
    }
    return NULL;
}
