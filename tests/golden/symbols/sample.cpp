// 図形 📐
#include "shape.h"

namespace shapes::flat {

enum class Colour { Red, Green };

/// A shape.
template <typename T>
class Shape : public Base {
 public:
  Shape() = default;
  explicit Shape(T side) : side_(side) {}
  virtual ~Shape() {}

  T area() const { return side_ * scale(); }
  bool operator==(const Shape& other) const { return true; }
  operator bool() const { return true; }
  int declared(int value);

  struct Options {
    int depth;
  };

 private:
  T side_;
};

template <typename T>
int Shape<T>::declared(int value) {
  return value;
}

// Doubles.
template <typename T>
T twice(T value) {
  auto inner = [](int x) { return x; };
  return inner(value) + value;
}

const Base& Group::first() const { return *shapes_[0]; }

Group::~Group() {}

std::ostream& operator<<(std::ostream& out, const Group& group) {
  return out;
}

Group::operator int() const { return 1; }

using Pair = std::pair<int, int>;

}  // namespace shapes::flat

namespace {
int hidden() { return shapes::flat::twice(1); }
}

struct EXPORTED Group : Base {
  int count() const { return 1; }
};

TEST_F(ShapeTest, HasArea) {
  EXPECT_EQ(hidden(), 1);
}

#define SQUARE(x) ((x) * (x))

extern "C" int exported(void) { return hidden(); }
