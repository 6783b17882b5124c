#include "settings.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include <sys/stat.h>

namespace emulated
{
bool settings_bytes(const char *text, uint64_t *bytes)
{
    char *end;
    unsigned long long value = strtoull(text, &end, 0);
    if (end == text || *text == '-')
        return false;
    int shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    if (shift)
        end++;
    *bytes = (uint64_t)value << shift;
    return *end == '\0';
}

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value ? value : "";
}

settings settings_read()
{
    settings read = {
        4, (uint64_t)1 << 30, 0, 9, 0, variable("RUNG_EMULATED_FAULTS"), variable("RUNG_EMULATED_STATE")};
    uint64_t number;
    if (settings_bytes(variable("RUNG_EMULATED_DEVICES"), &number) && number <= 64)
        read.devices = (int)number;
    if (settings_bytes(variable("RUNG_EMULATED_MEMORY"), &number))
        read.memory = number;
    if (settings_bytes(variable("RUNG_EMULATED_SEED"), &number))
        read.seed = number;
    int major, minor;
    if (sscanf(variable("RUNG_EMULATED_CAPABILITY"), "%d.%d", &major, &minor) == 2) {
        read.major = major;
        read.minor = minor;
    }
    return read;
}

struct fault_name {
    const char *name;
    fault_kind kind;
    bool needs_value;
};
static const fault_name fault_names[] = {
    {"allocation", FAULT_ALLOCATION, true},
    {"allocation_above", FAULT_ALLOCATION_ABOVE, true},
    {"asynchronous", FAULT_ASYNCHRONOUS, false},
    {"sticky", FAULT_STICKY, false},
    {"lost", FAULT_LOST, false},
    {"ecc", FAULT_ECC, false},
    {"throttle", FAULT_THROTTLE, false},
    {"xid", FAULT_XID, true},
    {"temperature", FAULT_TEMPERATURE, true},
    {"power", FAULT_POWER, true},
    {"utilization", FAULT_UTILIZATION, true},
    {"memory_used", FAULT_MEMORY_USED, true},
    {"no_device", FAULT_NO_DEVICE, false},
    {"old_driver", FAULT_OLD_DRIVER, false},
    {"rank_hangs", FAULT_RANK_HANGS, false},
    {"rank_fails", FAULT_RANK_FAILS, false},
};

static bool number_of(const std::string &text, int64_t *value)
{
    uint64_t bytes;
    if (!settings_bytes(text.c_str(), &bytes))
        return false;
    *value = (int64_t)bytes;
    return true;
}

/* One `key=value` or bare number behind a fault's name. */
static bool parse_detail(const std::string &detail, fault *into)
{
    size_t equals = detail.find('=');
    if (equals == std::string::npos)
        return number_of(detail, &into->value);
    std::string key = detail.substr(0, equals), text = detail.substr(equals + 1);
    if (key == "kernel") {
        into->kernel = text;
        return !text.empty();
    }
    int64_t value;
    if (!number_of(text, &value))
        return false;
    if (key == "device")
        into->device = (int)value;
    else if (key == "launch")
        into->launch = value;
    else if (key == "count")
        into->count = value;
    else if (key == "reasons")
        into->reasons = value;
    else if (key == "rank")
        into->rank = (int)value;
    else if (key == "call")
        into->call = (int)value;
    else
        return false;
    return true;
}

static bool parse_one(const std::string &text, fault *into)
{
    *into = {FAULT_LOST, -1, -1, -1, -1, -1, -1, -1, "", 0};
    std::istringstream parts(text);
    std::string part;
    std::getline(parts, part, ':');
    const fault_name *found = nullptr;
    for (const fault_name &name : fault_names)
        if (part == name.name)
            found = &name;
    if (!found)
        return false;
    into->kind = found->kind;
    while (std::getline(parts, part, ':'))
        if (!parse_detail(part, into))
            return false;
    return !found->needs_value || into->value >= 0;
}

bool fault_parse(const std::string &list, std::vector<fault> *faults)
{
    size_t begin = 0;
    while (begin <= list.size()) {
        size_t end = list.find_first_of(",; \t\n", begin);
        std::string text = list.substr(begin, end == std::string::npos ? end : end - begin);
        fault one;
        if (!text.empty()) {
            if (!parse_one(text, &one))
                return false;
            faults->push_back(one);
        }
        if (end == std::string::npos)
            break;
        begin = end + 1;
    }
    return true;
}

static void complain(const char *where, const std::string &list)
{
    fprintf(stderr, "emulated GPU: %s cannot be read: %s\n", where, list.c_str());
}

void fault_list::reset(const settings &from)
{
    all.clear();
    if (!fault_parse(from.faults, &all))
        complain("RUNG_EMULATED_FAULTS", from.faults);
    own_ = all.size();
    path_ = from.state;
    stamp_ = -1;
    refresh();
}

bool fault_list::replace(const char *list)
{
    std::vector<fault> read;
    if (!fault_parse(list, &read))
        return false;
    all = read;
    own_ = all.size();
    stamp_ = -1;
    refresh();
    return true;
}

bool fault_list::refresh()
{
    if (path_.empty())
        return false;
    struct stat status;
    int64_t stamp = 0; /* not there: no faults */
    if (stat(path_.c_str(), &status) == 0)
        stamp = (int64_t)status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec + status.st_size +
                (int64_t)status.st_ino;
    if (stamp == stamp_)
        return false;
    stamp_ = stamp;
    std::ifstream file(path_);
    std::string line, text;
    while (std::getline(file, line))
        text += line.substr(0, line.find('#')) + "\n";
    std::vector<fault> read(all.begin(), all.begin() + (long)own_);
    if (!fault_parse(text, &read))
        complain(path_.c_str(), text);
    all = read;
    return true;
}
} // namespace emulated
