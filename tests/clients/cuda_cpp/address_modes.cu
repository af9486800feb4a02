// Textures: every address mode with both filters, in elements and normalized, of one and two dimensions, against a model
// of the programming guide.
#include "check.h"
#include <vector>
__global__ void read1(cudaTextureObject_t t, const float *x, float *o, int n) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i < n) o[i] = tex1D<float>(t, x[i]);
}
__global__ void read2(cudaTextureObject_t t, const float *x, const float *y, float *o, int n) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i < n) o[i] = tex2D<float>(t, x[i], y[i]);
}
static bool index(int &i, int n, cudaTextureAddressMode m) {
    if (m == cudaAddressModeClamp) {
        i = i < 0 ? 0 : i >= n ? n - 1 : i;
        return true;
    }
    if (m == cudaAddressModeBorder) return i >= 0 && i < n;
    if (m == cudaAddressModeWrap) {
        i = ((i % n) + n) % n;
        return true;
    }
    int p = ((i % (2 * n)) + 2 * n) % (2 * n);
    i = p < n ? p : 2 * n - 1 - p;
    return true;
}
static float at(const std::vector<float> &d, int w, int h, int x, int y, cudaTextureAddressMode m) {
    if (!index(x, w, m) || !index(y, h, m)) return 0;
    return d[y * w + x];
}
int main() {
    const int w = 13, h = 7, n = 600;
    std::vector<float> d(w * h), x(n), y(n), o(n);
    srand(3);
    for (auto &v : d) v = rand() % 256;
    cudaChannelFormatDesc c = cudaCreateChannelDesc<float>();
    cudaArray_t a1, a2;
    CHECK(cudaMallocArray(&a1, &c, w));
    CHECK(cudaMallocArray(&a2, &c, w, h));
    CHECK(cudaMemcpy2DToArray(a1, 0, 0, d.data(), w * 4, w * 4, 1, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy2DToArray(a2, 0, 0, d.data(), w * 4, w * 4, h, cudaMemcpyHostToDevice));
    float *dx, *dy, *dO;
    CHECK(cudaMalloc(&dx, 4 * n));
    CHECK(cudaMalloc(&dy, 4 * n));
    CHECK(cudaMalloc(&dO, 4 * n));
    int tested = 0;
    for (int norm = 0; norm < 2; ++norm)
        for (auto m : {cudaAddressModeClamp, cudaAddressModeBorder, cudaAddressModeWrap, cudaAddressModeMirror})
            for (auto f : {cudaFilterModePoint, cudaFilterModeLinear}) {
                if (!norm && (m == cudaAddressModeWrap || m == cudaAddressModeMirror)) continue; // clamp then
                for (int i = 0; i < n; ++i) {
                    x[i] = (rand() % (w * 3 * 256) - w * 256) / 256.f;
                    y[i] = (rand() % (h * 3 * 256) - h * 256) / 256.f;
                    if (norm) {
                        x[i] = (rand() % 3072 - 1024) / 1024.f;
                        y[i] = (rand() % 3072 - 1024) / 1024.f;
                    }
                }
                CHECK(cudaMemcpy(dx, x.data(), 4 * n, cudaMemcpyHostToDevice));
                CHECK(cudaMemcpy(dy, y.data(), 4 * n, cudaMemcpyHostToDevice));
                for (int dim = 1; dim < 3; ++dim) {
                    cudaResourceDesc r = {};
                    r.resType = cudaResourceTypeArray;
                    r.res.array.array = dim == 1 ? a1 : a2;
                    cudaTextureDesc t = {};
                    t.addressMode[0] = t.addressMode[1] = m;
                    t.filterMode = f;
                    t.readMode = cudaReadModeElementType;
                    t.normalizedCoords = norm;
                    cudaTextureObject_t tex;
                    CHECK(cudaCreateTextureObject(&tex, &r, &t, nullptr));
                    if (dim == 1) read1<<<5, 128>>>(tex, dx, dO, n);
                    else
                        read2<<<5, 128>>>(tex, dx, dy, dO, n);
                    CHECK(cudaMemcpy(o.data(), dO, 4 * n, cudaMemcpyDeviceToHost));
                    CHECK(cudaDestroyTextureObject(tex));
                    for (int i = 0; i < n; ++i) {
                        double u = norm ? (double)x[i] * w : x[i], v = dim == 1 ? .5 : norm ? (double)y[i] * h : y[i];
                        int hh = dim == 1 ? 1 : h;
                        double want, slack = 1e-4;
                        if (f == cudaFilterModePoint) {
                            double fu = u - std::floor(u), fv = v - std::floor(v);
                            if (norm && (fu < 1e-3 || fu > .999 || (dim == 2 && (fv < 1e-3 || fv > .999)))) continue;
                            want = at(d, w, hh, (int)std::floor(u), (int)std::floor(v), m);
                        } else {
                            double b = u - .5, e = v - .5;
                            int i0 = std::floor(b), j0 = std::floor(e);
                            double al = b - i0, be = dim == 1 ? 0 : e - j0;
                            auto q = [](double s) { return std::floor(s * 256 + .5) / 256; };
                            al = q(al);
                            be = q(be);
                            if (dim == 1) j0 = 0;
                            want = (1 - al) * (1 - be) * at(d, w, hh, i0, j0, m) +
                                   al * (1 - be) * at(d, w, hh, i0 + 1, j0, m) +
                                   (be ? (1 - al) * be * at(d, w, hh, i0, j0 + 1, m) +
                                             al * be * at(d, w, hh, i0 + 1, j0 + 1, m)
                                       : 0);
                            slack = 2.1;
                        }
                        if (std::fabs(want - o[i]) > slack) {
                            std::printf("norm %d mode %d filter %d dim %d: (%g %g) want %g got %g\n", norm, m, f, dim,
                                        x[i], y[i], want, o[i]);
                            return 1;
                        }
                        ++tested;
                    }
                }
            }
    EXPECT(tested > 12000);
    return passed();
}
