/* Reading and writing W elements at once, for kernels that exist in two widths: packs, and single elements where rows do not divide
 * into packs.
 */
#ifndef KI_WIDE_CUH
#define KI_WIDE_CUH

#include "common.cuh"

namespace ki {

/* W is pack<T>::size, or 1. */
template <int W, typename T> __device__ inline void read_once(const T *at, float (&v)[W])
{
    if constexpr (W == 1) {
        v[0] = widen(__ldcg(at));
    } else {
        pack<T> p = load_once(at);
        for (int i = 0; i < W; i++)
            v[i] = p[i];
    }
}

template <int W, typename T> __device__ inline void write_once(T *at, const float (&v)[W])
{
    if constexpr (W == 1) {
        __stcg(at, narrow<T>(v[0]));
    } else {
        unpacked<T> p;
        for (int i = 0; i < W; i++)
            p.set(i, v[i]);
        store_once(at, p);
    }
}

/* Written once and read again soon. */
template <int W, typename T> __device__ inline void write_cached(T *at, const float (&v)[W])
{
    if constexpr (W == 1) {
        *at = narrow<T>(v[0]);
    } else {
        unpacked<T> p;
        for (int i = 0; i < W; i++)
            p.set(i, v[i]);
        *(pack<T> *)at = p.packed();
    }
}

/* Read by many blocks. */
template <int W, typename T> __device__ inline void read_shared(const T *at, float (&v)[W])
{
    if constexpr (W == 1) {
        v[0] = widen(__ldg(at));
    } else {
        pack<T> p = load_shared(at);
        for (int i = 0; i < W; i++)
            v[i] = p[i];
    }
}

/* W elements as they are, to be copied. */
template <int W, typename T> __device__ inline auto take_shared(const T *at)
{
    if constexpr (W == 1)
        return __ldg(at);
    else
        return load_shared(at);
}

template <typename T> __device__ inline void put_once(T *at, T v)
{
    __stcg(at, v);
}

template <typename T> __device__ inline void put_once(T *at, const pack<T> &v)
{
    store_once(at, v);
}

}

#endif
