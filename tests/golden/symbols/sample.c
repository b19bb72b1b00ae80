/* 箱 of bytes 📦 */
#include <stdio.h>
#include "box.h"

#define LIMIT 10
#define LARGER(a, b) \
    ((a) > (b) ? (a) : (b))

static int count;

/* A box. */
struct box {
    int size;
};

typedef struct {
    int x, y;
} point;

typedef struct node {
    struct node *next;
} node_t;

enum colour { RED, GREEN };

int box_size(const struct box *box);

// The size.
int box_size(const struct box *box)
{
    return LARGER(box->size, LIMIT);
}

static char *box_name(
    struct box *box,
    int length)
{
    printf("%d", box_size(box));
    return NULL;
}

int **table(void) { return 0; }

int (*chosen(int which))(int)
{
    return 0;
}
