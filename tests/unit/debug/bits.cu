// Compiled by `nvcc -G -ptx -arch=sm_90 bits.cu` of CUDA 13.0: bit fields, enumerations and pointers.
struct Flags { unsigned low : 3; int mid : 5; unsigned long long high : 40; bool set : 1; unsigned char last : 7; };
enum Colour { RED, GREEN = 5, NONE = -1 };
enum class Mode : unsigned char { FAST = 1, SAFE = 2 };
struct Node { int value; Node *next; };
struct Car { Colour colour; Mode mode; Flags flags; int wheels[4]; };
extern "C" __global__ void bits(int *out, Car given) {
  int i = threadIdx.x;
  Car car = given;
  car.flags.low = i;
  car.flags.mid = -i;
  car.flags.high = (1ull << 39) + i;
  car.flags.set = i & 1;
  car.flags.last = 64 + i;
  car.mode = i & 1 ? Mode::SAFE : Mode::FAST;
  Colour paint = i & 1 ? GREEN : NONE;
  Node third = {30 + i, nullptr}, second = {20 + i, &third};
  Node *p = &second;
  int *q = car.wheels + 2;
  void *any = q;
  for (int k = 0; k < 2; k++)
    out[i * 2 + k] = car.flags.low + car.flags.mid + car.flags.set + car.flags.last + (int)car.flags.high + paint + p->next->value + *q + (int)car.mode + (any != nullptr);
}
