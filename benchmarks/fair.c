/* C that takes the place of a kernel in `kernels.c` where compilers do badly with that one.  */
#include <immintrin.h>
#include <stdint.h>

/* gcc converts to _Float16 one by one without AVX512-FP16: here through float, sixteen at a time. */
void dequant_v(const uint32_t *restrict in, _Float16 *restrict out, int n)
{
#pragma omp parallel for schedule(static)
    for (int i = 0; i < n / 4; i++) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)in + i);
        bytes = _mm_shuffle_epi8(bytes, _mm_setr_epi8(0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15));
        __m512 values = _mm512_cvtepi32_ps(_mm512_sub_epi32(_mm512_cvtepu8_epi32(bytes), _mm512_set1_epi32(128)));
        _mm256_storeu_si256((__m256i *)out + i, _mm512_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT));
    }
}
