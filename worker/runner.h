/* The training child, `rung runner`: reads the link, trains on one device, reports. Never returns to the
 * agent's code. */
#ifndef RUNG_WORKER_RUNNER_H
#define RUNG_WORKER_RUNNER_H

/* Serves the link on `fd` until it closes; `device` is "cpu:0" or "cuda:0". Returns an exit code. */
int runner_main(int fd, const char *device);
/* Prints {"devices": [{"id", "name", "memory_bytes", "bf16"} or {"fault"}, ...]} of a plugin's kind, or
 * {"error"}, without touching a device. Returns an exit code. */
int runner_describe(const char *kind);

#endif
