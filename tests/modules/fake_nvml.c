/* NVIDIA's management library, as far as the module `nvml` calls it: each answer is a line of the
   file STATE, `FUNCTION GPU NUMBER...`. `!CODE` is a result other than success, and `hang` does not
   return for as long as that stands there. What has no line is not supported. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOT_SUPPORTED 3
#define HANGS (-1)

typedef unsigned long long number;

struct pci_info {
    char bus_id_legacy[16];
    unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
    char bus_id[32];
};

static int numbers_of(char *words, number *found, int count) {
    for (int at = 0; at < count; at++) {
        char *end;
        found[at] = strtoull(words, &end, 0);
        if (end == words)
            return NOT_SUPPORTED;
        words = end;
    }
    return 0;
}

static int look(const char *function, number gpu, number *found, int count) {
    char line[256], name[128], words[128];
    int code = NOT_SUPPORTED;
    number of;
    FILE *file = fopen(STATE, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "%127s %llu %127[^\n]", name, &of, words) != 3)
            continue;
        if (strcmp(name, function) != 0 || of != gpu)
            continue;
        if (words[0] == '!')
            code = atoi(words + 1);
        else
            code = strcmp(words, "hang") == 0 ? HANGS : numbers_of(words, found, count);
    }
    if (file != NULL)
        fclose(file);
    return code;
}

static int answer(const char *function, number gpu, number *found, int count) {
    int code;
    while ((code = look(function, gpu, found, count)) == HANGS)
        usleep(10000);
    return code;
}

static int one(const char *function, void *gpu, unsigned *value) {
    number found;
    int code = answer(function, (number)gpu, &found, 1);
    if (code == 0)
        *value = found;
    return code;
}

int nvmlInit_v2(void) {
    number found;
    return answer(__func__, 0, &found, 1);
}

int nvmlShutdown(void) { return 0; }

const char *nvmlErrorString(int code) { return code == 9 ? "Driver Not Loaded" : "Unknown Error"; }

int nvmlDeviceGetCount_v2(unsigned *count) { return one(__func__, 0, count); }

/* A handle is the index. */
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **gpu) {
    number found;
    *gpu = (void *)(number)index;
    return answer(__func__, index, &found, 1);
}

int nvmlDeviceGetPciInfo_v3(void *gpu, struct pci_info *info) {
    number found[3];
    int code = answer(__func__, (number)gpu, found, 3);
    info->domain = found[0], info->bus = found[1], info->device = found[2];
    return code;
}

int nvmlDeviceGetTemperature(void *gpu, unsigned sensor, unsigned *degrees) {
    return sensor == 0 ? one(__func__, gpu, degrees) : NOT_SUPPORTED;
}

int nvmlDeviceGetTemperatureThreshold(void *gpu, unsigned type, unsigned *degrees) {
    return type == 1 ? one(__func__, gpu, degrees) : NOT_SUPPORTED;
}

int nvmlDeviceGetPowerUsage(void *gpu, unsigned *milliwatts) {
    return one(__func__, gpu, milliwatts);
}

int nvmlDeviceGetEnforcedPowerLimit(void *gpu, unsigned *milliwatts) {
    return one(__func__, gpu, milliwatts);
}

/* Its name before driver 535: there is no other here. */
int nvmlDeviceGetCurrentClocksThrottleReasons(void *gpu, number *reasons) {
    return answer(__func__, (number)gpu, reasons, 1);
}

/* Of the lifetime alone. */
int nvmlDeviceGetTotalEccErrors(void *gpu, unsigned type, unsigned counter, number *errors) {
    number found[2];
    int code = counter == 1 && type < 2 ? answer(__func__, (number)gpu, found, 2) : NOT_SUPPORTED;
    if (code == 0)
        *errors = found[type];
    return code;
}

int nvmlDeviceGetRemappedRows(void *gpu, unsigned *corrected, unsigned *uncorrected,
                              unsigned *pending, unsigned *failed) {
    number found[4];
    int code = answer(__func__, (number)gpu, found, 4);
    if (code == 0)
        *corrected = found[0], *uncorrected = found[1], *pending = found[2], *failed = found[3];
    return code;
}

int nvmlDeviceGetPcieReplayCounter(void *gpu, unsigned *replays) {
    return one(__func__, gpu, replays);
}
