// Copies to and from arrays on streams, in volumes and between devices, batches of copies with their attributes.
// devices: 2
#include "check.h"
#include <vector>
int main() {
    const int w = 37, h = 11, d = 5;
    cudaStream_t s;
    CHECK(cudaStreamCreate(&s));
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaArray_t a, b, volume;
    CHECK(cudaMallocArray(&a, &format, w, h));
    CHECK(cudaMallocArray(&b, &format, w, h));
    std::vector<float> in(w * h), out(w * h);
    for (int i = 0; i < w * h; i++) in[i] = i;
    CHECK(cudaMemcpy2DToArrayAsync(a, 0, 0, in.data(), 4 * w, 4 * w, h, cudaMemcpyHostToDevice, s));
    CHECK(cudaMemcpy2DArrayToArray(b, 0, 0, a, 0, 0, 4 * w, h, cudaMemcpyDeviceToDevice));
    CHECK(cudaMemcpy2DFromArrayAsync(out.data(), 4 * w, b, 0, 0, 4 * w, h, cudaMemcpyDeviceToHost, s));
    CHECK(cudaStreamSynchronize(s));
    EXPECT(in == out);
    // a window: 7 columns from 3, 4 rows from 2
    std::vector<float> window(7 * 4, -1);
    CHECK(cudaMemcpy2DFromArrayAsync(window.data(), 28, a, 12, 2, 28, 4, cudaMemcpyDeviceToHost, s));
    CHECK(cudaStreamSynchronize(s));
    for (int y = 0; y < 4; y++) for (int x = 0; x < 7; x++) EXPECT(window[7 * y + x] == in[w * (y + 2) + x + 3]);
    // what would leave the array is refused
    EXPECT(cudaMemcpy2DFromArrayAsync(window.data(), 28, a, 4 * 31, 2, 28, 4, cudaMemcpyDeviceToHost, s) == cudaErrorInvalidValue);
    cudaGetLastError();
    EXPECT(cudaMemcpy2DToArrayAsync(a, 0, 8, in.data(), 4 * w, 4 * w, 4, cudaMemcpyHostToDevice, s) == cudaErrorInvalidValue);
    cudaGetLastError();
    // bytes that go on in the next row (deprecated copies)
    CHECK(cudaMemset(nullptr, 0, 0));
    std::vector<float> line(50);
    for (int i = 0; i < 50; i++) line[i] = 1000 + i;
    CHECK(cudaMemcpyToArray(a, 4 * 30, 1, line.data(), 200, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpyFromArray(out.data(), a, 0, 0, 4 * w * h, cudaMemcpyDeviceToHost));
    for (int i = 0; i < w * h; i++) EXPECT(out[i] == (i >= w + 30 && i < w + 80 ? 1000 + i - w - 30 : in[i]));

    // volumes: fills and copies, to the other device
    cudaExtent extent = make_cudaExtent(w * 4, h, d);
    cudaPitchedPtr p, q;
    CHECK(cudaMalloc3D(&p, extent));
    CHECK(cudaMemset3DAsync(p, 0x11, extent, s));
    CHECK(cudaMemset3DAsync(p, 0x22, make_cudaExtent(8, 2, 3), s));
    CHECK(cudaStreamSynchronize(s));
    CHECK(cudaSetDevice(1));
    CHECK(cudaMalloc3D(&q, extent));
    cudaMemcpy3DPeerParms peer = {};
    peer.srcPtr = p, peer.dstPtr = q, peer.srcDevice = 0, peer.dstDevice = 1, peer.extent = extent;
    CHECK(cudaMemcpy3DPeer(&peer));
    CHECK(cudaMemset3D(q, 0x33, make_cudaExtent(4, h, 1)));
    CHECK(cudaSetDevice(0));
    CHECK(cudaMemcpy3DPeerAsync(&peer, s));
    CHECK(cudaStreamSynchronize(s));
    std::vector<unsigned char> bytes(w * 4 * h * d);
    cudaMemcpy3DParms back = {};
    back.srcPtr = q, back.dstPtr = make_cudaPitchedPtr(bytes.data(), w * 4, w * 4, h), back.extent = extent, back.kind = cudaMemcpyDeviceToHost;
    CHECK(cudaMemcpy3D(&back));
    for (int z = 0; z < d; z++) for (int y = 0; y < h; y++) for (int x = 0; x < 4 * w; x++)
        EXPECT(bytes[(z * h + y) * 4 * w + x] == (x < 8 && y < 2 && z < 3 ? 0x22 : 0x11));

    // a batch of copies between pointers, with two sets of attributes
    float *dev[3], host[3][64], got[3][64];
    std::vector<void *> dst;
    std::vector<const void *> src;
    std::vector<size_t> sizes;
    for (int i = 0; i < 3; i++) {
        CHECK(cudaMalloc(&dev[i], 256));
        for (int k = 0; k < 64; k++) host[i][k] = 100 * i + k;
        dst.push_back(dev[i]), src.push_back(host[i]), sizes.push_back(256 - 64 * i);
    }
    cudaMemcpyAttributes at[2] = {};
    at[0].srcAccessOrder = cudaMemcpySrcAccessOrderStream, at[1].srcAccessOrder = cudaMemcpySrcAccessOrderDuringApiCall;
    size_t from[2] = {0, 2};
    CHECK(cudaMemcpyBatchAsync(dst.data(), src.data(), sizes.data(), 3, at, from, 2, s));
    host[2][0] = -1;  // it was read during the call
    CHECK(cudaStreamSynchronize(s));
    for (int i = 0; i < 3; i++) CHECK(cudaMemcpy(got[i], dev[i], sizes[i], cudaMemcpyDeviceToHost));
    for (int i = 0; i < 3; i++) for (size_t k = 0; k < sizes[i] / 4; k++) EXPECT(got[i][k] == 100 * i + k);
    from[0] = 1;
    EXPECT(cudaMemcpyBatchAsync(dst.data(), src.data(), sizes.data(), 3, at, from, 2, s) == cudaErrorInvalidValue);
    from[0] = 0, at[0].srcAccessOrder = cudaMemcpySrcAccessOrderInvalid;
    EXPECT(cudaMemcpyBatchAsync(dst.data(), src.data(), sizes.data(), 3, at, from, 2, s) == cudaErrorInvalidValue);
    at[0].srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    EXPECT(cudaMemcpyBatchAsync(dst.data(), src.data(), sizes.data(), 3, at, from, 2, 0) == cudaErrorInvalidValue);  // no legacy stream
    cudaGetLastError();
    CHECK(cudaMemcpyWithAttributesAsync(dev[0], dev[1], 64, at, s));
    CHECK(cudaStreamSynchronize(s));
    CHECK(cudaMemcpy(got[0], dev[0], 256, cudaMemcpyDeviceToHost));
    for (int k = 0; k < 64; k++) EXPECT(got[0][k] == (k < 16 ? 100 + k : k));

    // a batch of volumes, between a pointer and an array
    CHECK(cudaMalloc3DArray(&volume, &format, make_cudaExtent(8, 4, 2)));
    std::vector<float> v(64), u(64, -1);
    for (int i = 0; i < 64; i++) v[i] = i * i;
    cudaMemcpy3DBatchOp op = {};
    op.src.type = cudaMemcpyOperandTypePointer;
    op.src.op.ptr.ptr = v.data();
    op.dst.type = cudaMemcpyOperandTypeArray;
    op.dst.op.array.array = volume;
    op.extent = make_cudaExtent(8, 4, 2);
    op.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    CHECK(cudaMemcpy3DBatchAsync(1, &op, 0, s));
    cudaMemcpy3DBatchOp op2 = {};
    op2.src = op.dst;
    op2.src.op.array.offset = {2, 1, 1};
    op2.dst.type = cudaMemcpyOperandTypePointer;
    op2.dst.op.ptr.ptr = u.data();
    op2.dst.op.ptr.rowLength = 10, op2.dst.op.ptr.layerHeight = 4;
    op2.extent = make_cudaExtent(5, 3, 1);
    op2.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    CHECK(cudaMemcpy3DWithAttributesAsync(&op2, 0, s));
    CHECK(cudaStreamSynchronize(s));
    for (int y = 0; y < 4; y++) for (int x = 0; x < 10; x++) EXPECT(u[10 * y + x] == (x < 5 && y < 3 ? v[32 + 8 * (y + 1) + x + 2] : -1));
    return passed();
}
