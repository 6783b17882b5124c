/* rung check SPEC: validate, and show what the sweep would do. */
#include "cli/check_report.h"
#include "cli/command.h"
#include "cli/load.h"
#include "cli/options.h"
#include "worker/devices.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] = "usage: rung check SPEC [OPTION]...\n"
                            "Checks a spec (\"-\": standard input) and its data, and shows the space, the\n"
                            "rungs, the learning rates that the batch sizes come to, the memory that the\n"
                            "points take, and what may not be meant. Nothing is written. Exit code 2: the\n"
                            "spec or its data is wrong; every error is listed with its line and column.\n"
                            "\n"
                            "  --sample N           show the first N trials\n"
                            "  --format F           table (default) or json\n"
                            "  --devices D          what is planned for (as of run; default auto)\n"
                            "  --set KEY=VALUE      over the spec, dotted keys; may be repeated\n"
                            "  --name NAME          name of the sweep, over the spec's\n";

#define OVERRIDES 64
#define SAMPLE_LIMIT 1000000

struct check {
    const char *overrides[OVERRIDES + 1]; /* NULL-terminated */
    size_t override_count;
    const char *name, *format, *devices;
    int64_t sample;
};

static int read_sample(const char *text, int64_t *sample)
{
    char *end;
    errno = 0;
    *sample = strtoll(text, &end, 10);
    return errno != 0 || end == text || *end != '\0' || *sample < 0 || *sample > SAMPLE_LIMIT ? -1 : 0;
}

/* Fills `check`; -1: go on, else the exit code. */
static int read_options(struct check *check, int argc, char **argv)
{
    enum { OPTION_SAMPLE = 256, OPTION_FORMAT, OPTION_SET, OPTION_NAME, OPTION_DEVICES };
    static const struct option options[] = {{"sample", required_argument, NULL, OPTION_SAMPLE},
                                            {"format", required_argument, NULL, OPTION_FORMAT},
                                            {"set", required_argument, NULL, OPTION_SET},
                                            {"name", required_argument, NULL, OPTION_NAME},
                                            {"devices", required_argument, NULL, OPTION_DEVICES},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    int code;
    options_start();
    while ((code = options_next("check", argc, argv, options)) != -1) {
        switch (code) {
        case OPTION_SAMPLE:
            if (read_sample(optarg, &check->sample) != 0) {
                return command_usage_error("check", "--sample: found '%s', accepted a number from 0 to %d",
                                           optarg, SAMPLE_LIMIT);
            }
            break;
        case OPTION_FORMAT:
            check->format = optarg;
            break;
        case OPTION_SET:
            if (check->override_count == OVERRIDES) {
                return command_usage_error("check", "more than %d --set options; put them into the spec",
                                           OVERRIDES);
            }
            check->overrides[check->override_count++] = optarg;
            break;
        case OPTION_NAME:
            check->name = optarg;
            break;
        case OPTION_DEVICES:
            check->devices = optarg;
            break;
        case 'h':
            fputs(usage, stdout);
            return EXIT_DONE;
        default:
            return EXIT_USAGE;
        }
    }
    if (strcmp(check->format, "table") != 0 && strcmp(check->format, "json") != 0) {
        return command_usage_error("check", "--format: found '%s', accepted table or json", check->format);
    }
    if (argc - optind != 1) {
        return command_usage_error("check", "accepted one SPEC, found %d", argc - optind);
    }
    return -1;
}

static int print_report(const json_t *report, bool json)
{
    if (!json) {
        check_print(report, stdout);
        return 0;
    }
    char *text = json_pretty(report);
    if (!text) {
        return -1;
    }
    puts(text);
    free(text);
    return 0;
}

int command_check(int argc, char **argv)
{
    struct check check = {.format = "table", .devices = "auto"};
    struct device_description *devices = NULL;
    struct spec spec;
    struct dataset dataset;
    struct error err = {0};
    int code = read_options(&check, argc, argv);
    if (code >= 0) {
        return code;
    }
    int count = devices_find(check.devices, "/proc/self/exe", &devices, NULL, &err);
    if (count < 0) {
        return command_fail("check", &err);
    }
    if (cli_load_spec_and_data(argv[optind], check.overrides, check.name, &spec, &dataset, &err) != 0) {
        devices_free(devices, count);
        return command_fail("check", &err);
    }
    json_t *report = check_report(&spec, &dataset, check.sample);
    if (!report || check_memory(report, &spec, &dataset, &devices[0]) != 0 ||
        print_report(report, strcmp(check.format, "json") == 0) != 0) {
        error_set(&err, ERROR_MEMORY, "no memory");
        code = command_fail("check", &err);
    } else {
        code = EXIT_DONE;
    }
    if (fflush(stdout) != 0) {
        error_set(&err, ERROR_RESOURCE, "write the report: %s", strerror(errno));
        code = command_fail("check", &err);
    }
    json_decref(report);
    devices_free(devices, count);
    dataset_release(&dataset);
    spec_release(&spec);
    return code;
}
