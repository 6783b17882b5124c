/* What the environment says: how many devices of what kind, the seed, the faults. Shared by the runtime and
 * the NVML library, which live in different processes. */
#ifndef EMULATED_GPU_SETTINGS_H
#define EMULATED_GPU_SETTINGS_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace emulated
{
struct settings {
    int devices;        /* RUNG_EMULATED_DEVICES, 4 */
    uint64_t memory;    /* RUNG_EMULATED_MEMORY, bytes of each, 1G */
    uint64_t seed;      /* RUNG_EMULATED_SEED, 0 */
    int major, minor;   /* RUNG_EMULATED_CAPABILITY, 9.0 */
    std::string faults; /* RUNG_EMULATED_FAULTS */
    std::string state;  /* RUNG_EMULATED_STATE: a file with more of them */
};
settings settings_read();

/* "512", "64K", "256M", "2G"; false if it is not such a number. */
bool settings_bytes(const char *text, uint64_t *bytes);

enum fault_kind {
    FAULT_ALLOCATION,
    FAULT_ALLOCATION_ABOVE,
    FAULT_ASYNCHRONOUS,
    FAULT_STICKY,
    FAULT_LOST,
    FAULT_ECC,
    FAULT_THROTTLE,
    FAULT_XID,
    FAULT_TEMPERATURE,
    FAULT_POWER,
    FAULT_UTILIZATION,
    FAULT_MEMORY_USED,
    FAULT_NO_DEVICE,
    FAULT_OLD_DRIVER,
    FAULT_RANK_HANGS,
    FAULT_RANK_FAILS
};

/* One of the list. Fields it does not use are -1 or empty. */
struct fault {
    fault_kind kind;
    int64_t value;  /* the number behind the name */
    int device;     /* -1: every one */
    int64_t launch; /* the launch of the device it strikes at, from 1 */
    int64_t count;  /* which of them, or how many (README.md) */
    int64_t reasons;
    int rank, call;
    std::string kernel; /* part of a kernel's name */
    int64_t seen;       /* so far */
};

/* Appends those of a list to `faults`; false at the first that cannot be read. */
bool fault_parse(const std::string &list, std::vector<fault> *faults);

/* The faults of RUNG_EMULATED_FAULTS and, read again whenever it has changed, of the file. */
class fault_list
{
  public:
    void reset(const settings &from);
    bool replace(const char *list);
    /* Looks at the file; true if the list has changed. */
    bool refresh();
    std::vector<fault> all; /* the environment's, then the file's */

  private:
    std::string path_;
    size_t own_ = 0; /* how many of them are not the file's */
    int64_t stamp_ = -1;
};
} // namespace emulated

#endif
