// Compiled by `nvcc -G -ptx -arch=sm_90 places.cu` of CUDA 13.0: variables at each kind of place.
struct Base { int kind; };
struct Point : Base { float x, y; short tag; };
struct Node { int value; Node *next; };
enum Colour { RED, GREEN = 5 };
__device__ Point origin = {{9}, 1.5f, -2.5f, -7};

__device__ float scaled(const Point &p, float by) {
  float sum = p.x + p.y;
  return sum * by;
}

extern "C" __global__ void places(float *out, Point first, int n) {
  __shared__ int row[2][4];
  int i = threadIdx.x;
  bool odd = i & 1;
  signed char low = -3;
  unsigned long long wide = 1ull << 40;
  double third = 1.0 / 3;
  Colour colour = odd ? GREEN : RED;
  Node last = {i * 10, nullptr}, head = {i, &last};
  Point moved[2] = {first, origin};
  moved[1].x += i;
  row[1][2] = n;
  for (int k = 0; k < 2; k++) {
    float got = scaled(moved[k], k + 1.0f);
    out[i * 2 + k] = got + low + third + wide + colour + head.next->value + row[1][2];
  }
}
