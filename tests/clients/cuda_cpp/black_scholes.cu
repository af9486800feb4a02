// Prices of options by Black and Scholes, in single precision, and Monte Carlo's estimate of pi in double precision.
#include "check.h"
#include <vector>

__device__ float normal(float x) { return 0.5f * erfcf(-x * 0.70710678f); }

__global__ void price(const float *spot, const float *strike, const float *years, float *call, float *put, int n) {
    const float rate = 0.02f, volatility = 0.30f;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float root = sqrtf(years[i]);
    float d1 = (logf(spot[i] / strike[i]) + (rate + 0.5f * volatility * volatility) * years[i]) / (volatility * root);
    float d2 = d1 - volatility * root, discount = expf(-rate * years[i]);
    call[i] = spot[i] * normal(d1) - strike[i] * discount * normal(d2);
    put[i] = strike[i] * discount * normal(-d2) - spot[i] * normal(-d1);
}

__global__ void throws(unsigned seed, int each, double *inside) {
    unsigned state = seed + (blockIdx.x * blockDim.x + threadIdx.x) * 747796405u;
    int count = 0;
    for (int i = 0; i < each; i++) {
        double at[2];
        for (double &coordinate : at) {
            state = state * 747796405u + 2891336453u;
            unsigned word = ((state >> ((state >> 28) + 4)) ^ state) * 277803737u;
            coordinate = ((word >> 22) ^ word) / 4294967296.0;
        }
        count += at[0] * at[0] + at[1] * at[1] < 1;
    }
    atomicAdd(inside, double(count));
}

int main() {
    const int n = 2000;
    std::vector<float> spot(n), strike(n), years(n), call(n), put(n);
    float *d[5];
    for (auto &each : d) CHECK(cudaMalloc(&each, n * 4));
    for (int i = 0; i < n; i++) spot[i] = 5 + i % 26, strike[i] = 1 + i % 97, years[i] = 0.25f + (i % 40) * 0.25f;
    CHECK(cudaMemcpy(d[0], spot.data(), n * 4, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d[1], strike.data(), n * 4, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d[2], years.data(), n * 4, cudaMemcpyHostToDevice));
    price<<<(n + 127) / 128, 128>>>(d[0], d[1], d[2], d[3], d[4], n);
    CHECK(cudaMemcpy(call.data(), d[3], n * 4, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(put.data(), d[4], n * 4, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) {
        double s = spot[i], k = strike[i], t = years[i], r = 0.02f, v = 0.30f;
        double d1 = (std::log(s / k) + (r + v * v / 2) * t) / (v * std::sqrt(t)), d2 = d1 - v * std::sqrt(t);
        auto cdf = [](double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); };
        EXPECT(close(call[i], s * cdf(d1) - k * std::exp(-r * t) * cdf(d2), 1e-4));
        EXPECT(close(put[i], k * std::exp(-r * t) * cdf(-d2) - s * cdf(-d1), 1e-4));
    }
    double *inside, count;
    CHECK(cudaMalloc(&inside, 8));
    CHECK(cudaMemset(inside, 0, 8));
    throws<<<8, 128>>>(42, 64, inside);
    CHECK(cudaMemcpy(&count, inside, 8, cudaMemcpyDeviceToHost));
    EXPECT(std::fabs(4 * count / (8 * 128 * 64) - 3.14159265) < 0.03);
    return passed();
}
