// C = A B in tiles of 16 by 16 that the threads of a block load together into shared memory.
// A has `rows` rows and `inner` columns, B has `inner` rows and `columns` columns; none needs to be a multiple of the tile.
constexpr int TILE = 16;

extern "C" __global__ void matmul(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C,
                                  int rows, int inner, int columns) {
    __shared__ float a[TILE][TILE], b[TILE][TILE];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
    float sum = 0;
    for (int k = 0; k < inner; k += TILE) {
        a[y][x] = row < rows && k + x < inner ? A[row * inner + k + x] : 0;
        b[y][x] = k + y < inner && column < columns ? B[(k + y) * columns + column] : 0;
        __syncthreads();
        for (int i = 0; i < TILE; i++) sum += a[y][i] * b[i][x];
        __syncthreads();
    }
    if (row < rows && column < columns) C[row * columns + column] = sum;
}
