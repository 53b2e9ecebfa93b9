// nbody_tree.c -- gravity between bodies by a Barnes-Hut tree that is rebuilt for each step.
//
// The bodies of a ball fall towards each other. Each step puts all of them into an octree of
// allocated nodes, sums up the masses, walks the tree once for each body, and frees the tree node
// by node. The total energy must not drift. Answer: a hash of the final positions, rounded to a
// millionth.
#include "support/args.h"
#include "support/block.h"

#include <math.h>
#include <stdio.h>

enum { CHILDREN = 8, DEPTH_MAX = 64, BODIES_MAX = 1 << 20, ENERGY_BODIES_MAX = 4000 };

static const double time_step = 0.002;
// A cell counts as one mass when its width is below this share of its distance.
static const double opening = 1.0;
// Keeps close pairs from flying apart; squared.
static const double softening = 0.0025;
static const double energy_drift_max = 0.02;

struct vector {
    double x, y, z;
};

struct body {
    struct vector place, speed, pull;
};

// A leaf holds one body, a cell up to eight nodes. Both are allocated one by one.
struct node {
    struct vector centre_of_mass;
    double mass;
    bool is_leaf;
};

struct leaf {
    struct node node;
    const struct body *body;
};

struct cell {
    struct node node;
    double width;
    struct node *children[CHILDREN];
};

struct forest {
    struct body *bodies;
    uint32_t count;
    double body_mass;
    uint64_t nodes_made;
};

static struct node *leaf_make(struct forest *forest, const struct body *body)
{
    struct leaf *leaf = block_require(malloc(sizeof *leaf));
    *leaf = (struct leaf){
        .node = {.centre_of_mass = body->place, .mass = forest->body_mass, .is_leaf = true},
        .body = body};
    forest->nodes_made++;
    return &leaf->node;
}

static struct cell *cell_make(struct forest *forest, double width)
{
    struct cell *cell = block_require(malloc(sizeof *cell));
    *cell = (struct cell){.node = {.is_leaf = false}, .width = width};
    forest->nodes_made++;
    return cell;
}

// Which eighth of the cell around `middle` holds `place`; moves `middle` to that eighth's middle.
static unsigned octant_enter(struct vector *middle, const struct vector *place, double width)
{
    double step = width / 4;
    unsigned octant = (unsigned)(place->x >= middle->x) | (unsigned)(place->y >= middle->y) << 1 |
                      (unsigned)(place->z >= middle->z) << 2;
    middle->x += (octant & 1) != 0 ? step : -step;
    middle->y += (octant & 2) != 0 ? step : -step;
    middle->z += (octant & 4) != 0 ? step : -step;
    return octant;
}

static void tree_insert(struct forest *forest, struct cell *cell, const struct body *body)
{
    struct vector middle = {0, 0, 0};
    for (unsigned depth = 0; depth < DEPTH_MAX; depth++) {
        unsigned octant = octant_enter(&middle, &body->place, cell->width);
        struct node **child = &cell->children[octant];
        if (*child == NULL) {
            *child = leaf_make(forest, body);
            return;
        }
        if ((*child)->is_leaf) {
            struct node *resident = *child;
            struct cell *below = cell_make(forest, cell->width / 2);
            struct vector below_middle = middle;
            unsigned place = octant_enter(&below_middle, &resident->centre_of_mass, below->width);
            below->children[place] = resident;
            *child = &below->node;
        }
        cell = (struct cell *)*child;
    }
    report_wrong("two bodies are at one place");
}

static void tree_weigh(struct node *node)
{
    if (node->is_leaf) {
        return;
    }
    struct cell *cell = (struct cell *)node;
    struct vector moment = {0, 0, 0};
    for (unsigned i = 0; i < CHILDREN; i++) {
        const struct node *child = cell->children[i];
        if (child == NULL) {
            continue;
        }
        tree_weigh(cell->children[i]);
        node->mass += child->mass;
        moment.x += child->mass * child->centre_of_mass.x;
        moment.y += child->mass * child->centre_of_mass.y;
        moment.z += child->mass * child->centre_of_mass.z;
    }
    node->centre_of_mass =
        (struct vector){moment.x / node->mass, moment.y / node->mass, moment.z / node->mass};
}

static void tree_pull(const struct node *node, struct body *body)
{
    struct vector way = {node->centre_of_mass.x - body->place.x,
                         node->centre_of_mass.y - body->place.y,
                         node->centre_of_mass.z - body->place.z};
    double square = way.x * way.x + way.y * way.y + way.z * way.z;
    const struct cell *cell = (const struct cell *)node;
    if (node->is_leaf ? ((const struct leaf *)node)->body != body
                      : cell->width * cell->width < opening * opening * square) {
        double distance = sqrt(square + softening);
        double pull = node->mass / (distance * distance * distance);
        body->pull.x += pull * way.x;
        body->pull.y += pull * way.y;
        body->pull.z += pull * way.z;
    } else if (!node->is_leaf) {
        for (unsigned i = 0; i < CHILDREN; i++) {
            if (cell->children[i] != NULL) {
                tree_pull(cell->children[i], body);
            }
        }
    }
}

static void tree_free(struct node *node)
{
    if (!node->is_leaf) {
        struct cell *cell = (struct cell *)node;
        for (unsigned i = 0; i < CHILDREN; i++) {
            if (cell->children[i] != NULL) {
                tree_free(cell->children[i]);
            }
        }
    }
    free(node);
}

static double forest_width(const struct forest *forest)
{
    double reach = 0;
    for (uint32_t i = 0; i < forest->count; i++) {
        const struct vector *place = &forest->bodies[i].place;
        reach = fmax(reach, fmax(fabs(place->x), fmax(fabs(place->y), fabs(place->z))));
    }
    return 2 * reach * 1.001; // so that no body lies on the border
}

static void forest_pull(struct forest *forest)
{
    struct cell *root = cell_make(forest, forest_width(forest));
    for (uint32_t i = 0; i < forest->count; i++) {
        tree_insert(forest, root, &forest->bodies[i]);
    }
    tree_weigh(&root->node);
    for (uint32_t i = 0; i < forest->count; i++) {
        forest->bodies[i].pull = (struct vector){0, 0, 0};
        tree_pull(&root->node, &forest->bodies[i]);
    }
    tree_free(&root->node);
}

static void body_kick(struct body *body, double span)
{
    body->speed.x += body->pull.x * span;
    body->speed.y += body->pull.y * span;
    body->speed.z += body->pull.z * span;
}

// Half a step of speed, a step of place, half a step of speed: keeps the energy.
static void forest_step(struct forest *forest)
{
    for (uint32_t i = 0; i < forest->count; i++) {
        struct body *body = &forest->bodies[i];
        body_kick(body, time_step / 2);
        body->place.x += body->speed.x * time_step;
        body->place.y += body->speed.y * time_step;
        body->place.z += body->speed.z * time_step;
    }
    forest_pull(forest);
    for (uint32_t i = 0; i < forest->count; i++) {
        body_kick(&forest->bodies[i], time_step / 2);
    }
}

static double forest_energy(const struct forest *forest)
{
    double energy = 0;
    for (uint32_t i = 0; i < forest->count; i++) {
        const struct body *one = &forest->bodies[i];
        energy += forest->body_mass / 2 *
                  (one->speed.x * one->speed.x + one->speed.y * one->speed.y +
                   one->speed.z * one->speed.z);
        for (uint32_t j = i + 1; j < forest->count; j++) {
            const struct vector *other = &forest->bodies[j].place;
            double x = one->place.x - other->x;
            double y = one->place.y - other->y;
            double z = one->place.z - other->z;
            energy -=
                forest->body_mass * forest->body_mass / sqrt(x * x + y * y + z * z + softening);
        }
    }
    return energy;
}

static double prng_centred(struct prng *prng)
{
    return (double)(int64_t)(prng_next(prng) >> 11) / (double)(1ull << 52) - 1.0;
}

// A ball of radius 1 that turns slowly.
static void forest_seed(struct forest *forest, struct prng *prng)
{
    for (uint32_t i = 0; i < forest->count;) {
        double x = prng_centred(prng);
        double y = prng_centred(prng);
        double z = prng_centred(prng);
        if (x * x + y * y + z * z <= 1) {
            forest->bodies[i].place = (struct vector){x, y, z};
            forest->bodies[i].speed = (struct vector){-y / 2, x / 2, 0};
            i++;
        }
    }
}

static uint64_t forest_answer(const struct forest *forest)
{
    uint64_t answer = 0;
    for (uint32_t i = 0; i < forest->count; i++) {
        const struct vector *place = &forest->bodies[i].place;
        answer = prng_mix(answer + (uint64_t)llrint(place->x * 1e6));
        answer = prng_mix(answer + (uint64_t)llrint(place->y * 1e6));
        answer = prng_mix(answer + (uint64_t)llrint(place->z * 1e6));
    }
    return answer;
}

int main(int argc, char **argv)
{
    struct args args = args_begin(argc, argv, "nbody_tree [bodies] [steps] [seed]");
    struct forest forest = {0};
    forest.count = (uint32_t)args_number(&args, "bodies", 4000, 2, BODIES_MAX);
    uint64_t steps = args_number(&args, "steps", 200, 1, UINT32_MAX);
    struct prng prng = prng_seed(args_number(&args, "seed", 1, 0, UINT64_MAX), 0);
    args_end(&args);

    forest.bodies = report_table(forest.count, sizeof *forest.bodies);
    forest.body_mass = 1.0 / forest.count;
    forest_seed(&forest, &prng);
    // The exact energy takes a sum over all pairs: too much for a great many bodies.
    bool is_energy_checked = forest.count <= ENERGY_BODIES_MAX;
    double energy_before = is_energy_checked ? forest_energy(&forest) : 0;

    uint64_t begin_ns = report_clock_ns();
    forest_pull(&forest);
    for (uint64_t step = 0; step < steps; step++) {
        forest_step(&forest);
    }
    uint64_t elapsed_ns = report_clock_ns() - begin_ns;

    if (is_energy_checked) {
        double energy_after = forest_energy(&forest);
        printf("energy: %.6f before, %.6f after\n", energy_before, energy_after);
        if (fabs(energy_after - energy_before) > energy_drift_max * fabs(energy_before)) {
            report_wrong("the energy has drifted");
        }
    }
    report_answer(forest_answer(&forest), 2 * forest.nodes_made, elapsed_ns);
    return 0;
}
