/* Pools: only the accounting, since freed memory is never handed out again here. */
#include "world.h"

#include <cstring>

using namespace emulated;

static bool device_number_fits(int device)
{
    return device >= 0 && device < (int)the_world().devices.size();
}

extern "C" {
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device)
{
    return call(CALL_ANYWHERE, [&] {
        if (!device_number_fits(device))
            return cudaErrorInvalidDevice;
        *pool = the_world().devices[(size_t)device]->default_pool;
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device)
{
    return call(CALL_ANYWHERE, [&] {
        if (!device_number_fits(device))
            return cudaErrorInvalidDevice;
        *pool = the_world().devices[(size_t)device]->pool;
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool)
{
    return call(CALL_ANYWHERE, [&] {
        if (!device_number_fits(device))
            return cudaErrorInvalidDevice;
        if (!pool || pool->device != device)
            return cudaErrorInvalidValue;
        the_world().devices[(size_t)device]->pool = pool;
        return cudaSuccess;
    });
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const struct cudaMemPoolProps *properties)
{
    return call(CALL_ANYWHERE, [&] {
        if (properties->location.type != cudaMemLocationTypeDevice ||
            !device_number_fits(properties->location.id) ||
            properties->allocType != cudaMemAllocationTypePinned)
            return cudaErrorInvalidValue;
        *pool = new CUmemPoolHandle_st{properties->location.id};
        return cudaSuccess;
    });
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool)
{
    return call(CALL_ANYWHERE, [&] {
        device_state &device = *the_world().devices[(size_t)pool->device];
        if (pool == device.default_pool)
            return cudaErrorInvalidValue;
        run_device(pool->device);
        if (device.pool == pool)
            device.pool = device.default_pool;
        for (auto &[address, each] : the_world().memory)
            if (each.pool == pool)
                each.pool = nullptr;
        delete pool;
        return cudaSuccess;
    });
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value)
{
    return call(CALL_ANYWHERE, [&] {
        uint64_t number = 0;
        switch (attribute) {
        case cudaMemPoolReuseFollowEventDependencies:
        case cudaMemPoolReuseAllowOpportunistic:
        case cudaMemPoolReuseAllowInternalDependencies:
            return cudaSuccess;
        case cudaMemPoolAttrReleaseThreshold:
            std::memcpy(&pool->threshold, value, sizeof pool->threshold);
            return cudaSuccess;
        case cudaMemPoolAttrReservedMemHigh:
        case cudaMemPoolAttrUsedMemHigh: /* may only be set back to what is used now */
            std::memcpy(&number, value, sizeof number);
            if (number != 0)
                return cudaErrorInvalidValue;
            (attribute == cudaMemPoolAttrUsedMemHigh ? pool->used_high : pool->reserved_high) =
                attribute == cudaMemPoolAttrUsedMemHigh ? pool->used : pool->reserved;
            return cudaSuccess;
        default:
            return cudaErrorInvalidValue;
        }
    });
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value)
{
    return call(CALL_ANYWHERE, [&] {
        uint64_t number = 0;
        int flag = 1;
        switch (attribute) {
        case cudaMemPoolReuseFollowEventDependencies:
        case cudaMemPoolReuseAllowOpportunistic:
        case cudaMemPoolReuseAllowInternalDependencies:
            std::memcpy(value, &flag, sizeof flag);
            return cudaSuccess;
        case cudaMemPoolAttrReleaseThreshold:
            number = pool->threshold;
            break;
        case cudaMemPoolAttrReservedMemCurrent:
            number = pool->reserved;
            break;
        case cudaMemPoolAttrReservedMemHigh:
            number = pool->reserved_high;
            break;
        case cudaMemPoolAttrUsedMemCurrent:
            number = pool->used;
            break;
        case cudaMemPoolAttrUsedMemHigh:
            number = pool->used_high;
            break;
        default:
            return cudaErrorInvalidValue;
        }
        std::memcpy(value, &number, sizeof number);
        return cudaSuccess;
    });
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes_to_keep)
{
    return call(CALL_ANYWHERE, [&] {
        uint64_t kept = pool->used > bytes_to_keep ? pool->used : bytes_to_keep;
        pool->reserved = pool->reserved < kept ? pool->reserved : kept;
        return cudaSuccess;
    });
}
}
