// The published solver for the linear RankSVM with the squared hinge, written from its papers for comparison only:
//
//   min over w of f(w) = 1/2 |w|^2 + C sum over pairs of max(0, 1 - (s_i - s_j))^2,   s = X w
//
// - C.-P. Lee, C.-J. Lin, "Large-scale linear rankSVM", Neural Computation 26 (2014): value, gradient and
//   Hessian-vector product without the pairs, by sums over a selection tree of the labels, O(l log k).
// - C.-J. Lin, R. C. Weng, S. S. Keerthi, "Trust region Newton method for large-scale logistic regression",
//   JMLR 9 (2008), Algorithms 1 and 2: TRON, with the constants given there.
//
// One thread, double precision, rows as lists of 16-byte (index, value) nodes that end with index -1, as LIBLINEAR
// stores them. One pass over X for a value, one more for the gradient, two for a Hessian-vector product.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

struct Node {
    int32_t index;
    double value;
};

// Uses four sums, so that an addition need not wait for the previous one.
double dot(const std::vector<double>& a, const std::vector<double>& b) {
    const size_t n = a.size();
    double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        s0 += a[i] * b[i];
        s1 += a[i + 1] * b[i + 1];
        s2 += a[i + 2] * b[i + 2];
        s3 += a[i + 3] * b[i + 3];
    }
    for (; i < n; ++i) s0 += a[i] * b[i];
    return (s0 + s1) + (s2 + s3);
}

double norm(const std::vector<double>& a) { return std::sqrt(dot(a, a)); }

void add(double factor, const std::vector<double>& a, std::vector<double>& to) {
    for (size_t i = 0; i < to.size(); ++i) to[i] += factor * a[i];
}

// Rows as lists of nodes, in the given order.
class Rows {
public:
    Rows(int64_t n_rows, int64_t n_features) : n_features(n_features) { starts_.reserve(n_rows + 1); }

    void begin_row() { starts_.push_back(nodes_.size()); }
    void append(int32_t index, double value) { nodes_.push_back({index, value}); }
    void end_row() { nodes_.push_back({-1, 0.0}); }

    int64_t n_rows() const { return static_cast<int64_t>(starts_.size()); }

    // X v
    void times(const std::vector<double>& v, std::vector<double>& out) const {
        const double* values = v.data();
        for (size_t i = 0; i < starts_.size(); ++i) {
            double sum = 0.0;
            for (const Node* node = &nodes_[starts_[i]]; node->index != -1; ++node)
                sum += values[node->index] * node->value;
            out[i] = sum;
        }
    }

    // X' u
    void transposed_times(const std::vector<double>& u, std::vector<double>& out) const {
        std::fill(out.begin(), out.end(), 0.0);
        double* values = out.data();
        for (size_t i = 0; i < starts_.size(); ++i) {
            const double factor = u[i];
            for (const Node* node = &nodes_[starts_[i]]; node->index != -1; ++node)
                values[node->index] += factor * node->value;
        }
    }

    int64_t n_features;

private:
    std::vector<Node> nodes_;
    std::vector<size_t> starts_;
};

// A perfect binary tree over the labels of a query; a node has the number and the sum of the values below it.
class SelectionTree {
public:
    void reset(unsigned n_levels) {
        leaves_ = 1;
        while (leaves_ < n_levels) leaves_ *= 2;
        nodes_.assign(2 * leaves_, {0.0, 0});
    }
    void insert(unsigned level, double value) {
        for (unsigned node = leaves_ + level; node >= 1; node /= 2) {
            nodes_[node].sum += value;
            ++nodes_[node].count;
        }
    }
    // over the labels above the given one
    void above(unsigned level, int64_t& count, double& sum) const {
        count = 0, sum = 0.0;
        for (unsigned node = leaves_ + level; node > 1; node /= 2)
            if (node % 2 == 0) count += nodes_[node + 1].count, sum += nodes_[node + 1].sum;
    }
    void below(unsigned level, int64_t& count, double& sum) const {
        count = 0, sum = 0.0;
        for (unsigned node = leaves_ + level; node > 1; node /= 2)
            if (node % 2 == 1) count += nodes_[node - 1].count, sum += nodes_[node - 1].sum;
    }

private:
    struct Entry {
        double sum;
        int64_t count;
    };
    unsigned leaves_ = 1;
    std::vector<Entry> nodes_;
};

class Objective {
public:
    Objective(const Rows& rows, const double* labels, const int64_t* queries, double C)
        : rows_(rows), C_(C), product_(rows.n_rows()), u_(rows.n_rows()), above_(rows.n_rows()), below_(rows.n_rows()),
          level_(rows.n_rows()), trial_(rows.n_rows()) {
        group(labels, queries);
        current_ = trial_;
    }

    int64_t n_variables() const { return rows_.n_features; }

    // The value at a trial point; after `accept`, gradients and products are computed at this point.
    double value(const std::vector<double>& w) {
        Place& at = trial_;
        rows_.times(w, at.scores);
        for (Ranked& one : at.order) one.score = at.scores[one.document];
        double total = 0.0;
        for (size_t q = 0; q + 1 < starts_.size(); ++q) {
            std::sort(at.order.begin() + starts_[q], at.order.begin() + starts_[q + 1],
                      [](const Ranked& a, const Ranked& b) { return a.score < b.score; });
            sums(q, at, at.scores, at.n_above.data(), at.n_below.data());
        }
        for (size_t d = 0; d < at.scores.size(); ++d) {
            const double s = at.scores[d];
            const double above = static_cast<double>(at.n_above[d]), below = static_cast<double>(at.n_below[d]);
            at.pull[d] = (above + below) * s - (above_[d] + below_[d]) + above - below;
            total += s * (at.pull[d] + above - below) + below;
        }
        return 0.5 * dot(w, w) + C_ * total;
    }

    void accept() { std::swap(current_, trial_); }

    void gradient(const std::vector<double>& w, std::vector<double>& out) const {
        rows_.transposed_times(current_.pull, out);
        add_identity(w, out);
    }

    void hessian_product(const std::vector<double>& v, std::vector<double>& out) {
        Place& at = current_;
        rows_.times(v, product_);
        for (size_t q = 0; q + 1 < starts_.size(); ++q) sums(q, at, product_, nullptr, nullptr);
        for (size_t d = 0; d < u_.size(); ++d)
            u_[d] = static_cast<double>(at.n_above[d] + at.n_below[d]) * product_[d] - (above_[d] + below_[d]);
        rows_.transposed_times(u_, out);
        add_identity(v, out);
    }

private:
    struct Ranked {
        double score;
        int32_t document;
    };
    // An evaluation stores the documents of each query by score, numbers of violating ones, and half of dloss/ds.
    struct Place {
        explicit Place(int64_t n) : scores(n), pull(n), n_above(n), n_below(n), order(n) {}
        std::vector<double> scores, pull;
        std::vector<int64_t> n_above, n_below;
        std::vector<Ranked> order;
    };

    void group(const double* labels, const int64_t* queries) {
        std::vector<Ranked>& order = trial_.order;
        for (size_t d = 0; d < order.size(); ++d) order[d] = {0.0, static_cast<int32_t>(d)};
        std::stable_sort(order.begin(), order.end(), [&](const Ranked& one, const Ranked& other) {
            const int32_t a = one.document, b = other.document;
            return queries[a] != queries[b] ? queries[a] < queries[b] : labels[a] < labels[b];
        });
        for (size_t i = 0; i < order.size(); ++i) {
            const int32_t d = order[i].document, before = i == 0 ? -1 : order[i - 1].document;
            if (i == 0 || queries[d] != queries[before]) {
                starts_.push_back(static_cast<int64_t>(i));
                n_levels_.push_back(1);
            } else if (labels[d] != labels[before]) {
                ++n_levels_.back();
            }
            level_[d] = n_levels_.back() - 1;
        }
        starts_.push_back(static_cast<int64_t>(order.size()));
    }

    // For every document of a query: the sums of `values` over the violating documents with higher and with lower
    // labels, and the numbers of these documents if requested.
    void sums(size_t q, const Place& at, const std::vector<double>& values, int64_t* n_above, int64_t* n_below) {
        const Ranked* order = &at.order[starts_[q]];
        const int64_t size = starts_[q + 1] - starts_[q];
        int64_t number;
        tree_.reset(n_levels_[q]);
        for (int64_t i = 0, j = 0; i < size; ++i) {
            const int32_t d = order[i].document;
            for (; j < size && 1.0 - order[j].score + order[i].score > 0.0; ++j) insert(order[j].document, values);
            tree_.above(level_[d], number, above_[d]);
            if (n_above != nullptr) n_above[d] = number;
        }
        tree_.reset(n_levels_[q]);
        for (int64_t i = size - 1, j = size - 1; i >= 0; --i) {
            const int32_t d = order[i].document;
            for (; j >= 0 && 1.0 - order[i].score + order[j].score > 0.0; --j) insert(order[j].document, values);
            tree_.below(level_[d], number, below_[d]);
            if (n_below != nullptr) n_below[d] = number;
        }
    }

    void insert(int32_t document, const std::vector<double>& values) {
        tree_.insert(level_[document], values[document]);
    }

    void add_identity(const std::vector<double>& v, std::vector<double>& out) const {
        for (size_t i = 0; i < out.size(); ++i) out[i] = v[i] + 2.0 * C_ * out[i];
    }

    const Rows& rows_;
    const double C_;
    std::vector<double> product_, u_, above_, below_;
    std::vector<unsigned> level_;
    Place trial_, current_{0};
    std::vector<int64_t> starts_;
    std::vector<unsigned> n_levels_;
    SelectionTree tree_;
};

// Conjugate gradients for the step of a trust region (Algorithm 2). Returns the number of Hessian-vector products.
int trust_region_step(Objective& objective, double radius, const std::vector<double>& g, std::vector<double>& s,
                      std::vector<double>& r) {
    const double tolerance = 0.1;
    std::vector<double> d(g.size()), Hd(g.size());
    for (size_t i = 0; i < g.size(); ++i) s[i] = 0.0, r[i] = -g[i], d[i] = r[i];
    const double enough = tolerance * norm(g);
    double rr = dot(r, r);
    int products = 0;
    while (std::sqrt(rr) > enough) {
        objective.hessian_product(d, Hd);
        ++products;
        double alpha = rr / dot(d, Hd);
        add(alpha, d, s);
        if (norm(s) > radius) {  // back to the boundary
            add(-alpha, d, s);
            const double sd = dot(s, d), ss = dot(s, s), dd = dot(d, d), room = radius * radius - ss;
            const double root = std::sqrt(sd * sd + dd * room);
            alpha = sd >= 0.0 ? room / (sd + root) : (root - sd) / dd;
            add(alpha, d, s);
            add(-alpha, Hd, r);
            break;
        }
        add(-alpha, Hd, r);
        const double next = dot(r, r), beta = next / rr;
        for (size_t i = 0; i < d.size(); ++i) d[i] = r[i] + beta * d[i];
        rr = next;
    }
    return products;
}

struct Trace {
    int capacity, iterations, products;
    double *values, *gradients;  // at the start and after every accepted step
};

// Algorithm 1. Stops when the norm of the gradient is at most eps times that at 0, or after max_iter accepted steps.
void tron(Objective& objective, double eps, int max_iter, std::vector<double>& w, Trace& trace) {
    const double eta0 = 1e-4, eta1 = 0.25, eta2 = 0.75, sigma1 = 0.25, sigma2 = 0.5, sigma3 = 4.0;
    const size_t n = w.size();
    std::vector<double> g(n), s(n), r(n), trial(n);
    std::fill(w.begin(), w.end(), 0.0);
    double f = objective.value(w);
    objective.accept();
    objective.gradient(w, g);
    const double first = norm(g);
    double size = first, radius = first;
    trace.iterations = trace.products = 0;
    bool moved = false;
    auto record = [&] {
        if (trace.iterations >= trace.capacity) return;
        trace.values[trace.iterations] = f;
        trace.gradients[trace.iterations] = size / first;
    };
    record();
    while (size > eps * first && trace.iterations < max_iter) {
        trace.products += trust_region_step(objective, radius, g, s, r);
        for (size_t i = 0; i < n; ++i) trial[i] = w[i] + s[i];
        const double slope = dot(g, s), predicted = -0.5 * (slope - dot(s, r)), value = objective.value(trial);
        const double actual = f - value, length = norm(s);
        if (!moved) radius = std::min(radius, length);
        const double bend = value - f - slope;
        const double along = (bend <= 0.0 ? sigma3 : std::max(sigma1, -0.5 * (slope / bend))) * length;
        if (actual < eta0 * predicted) radius = std::min(std::max(along, sigma1 * length), sigma2 * radius);
        else if (actual < eta1 * predicted) radius = std::max(sigma1 * radius, std::min(along, sigma2 * radius));
        else if (actual < eta2 * predicted) radius = std::max(sigma1 * radius, std::min(along, sigma3 * radius));
        else radius = std::max(radius, std::min(along, sigma3 * radius));
        if (actual > eta0 * predicted) {
            w.swap(trial);
            f = value;
            objective.accept();
            objective.gradient(w, g);
            size = norm(g);
            moved = true;
            ++trace.iterations;
            record();
        }
        // no further progress within the digits of f
        if (std::fabs(actual) <= 1e-12 * std::fabs(f) && std::fabs(predicted) <= 1e-12 * std::fabs(f)) break;
        if (actual <= 0.0 && predicted <= 0.0) break;
    }
}

struct Problem {
    Problem(int64_t n_rows, int64_t n_features) : rows(n_rows, n_features) {}
    Rows rows;
    std::vector<double> labels;
    std::vector<int64_t> queries;
};

// "<label> qid:<id> <feature>:<value> ..." as LIBLINEAR reads it: line by line, a number at a time by the C library.
Problem* read_text(const char* path) {
    FILE* file = std::fopen(path, "r");
    if (file == nullptr) return nullptr;
    Problem* problem = new Problem(0, 0);
    char* line = nullptr;
    size_t capacity = 0;
    while (getline(&line, &capacity, file) > 0) {
        char* at = line;
        problem->labels.push_back(std::strtod(at, &at));
        problem->rows.begin_row();
        problem->queries.push_back(std::strtol(std::strchr(at, ':') + 1, &at, 10));
        while (true) {
            char* end;
            const int64_t feature = std::strtol(at, &end, 10);
            if (end == at || *end != ':') break;
            const double value = std::strtod(end + 1, &at);
            if (value != 0.0) problem->rows.append(static_cast<int32_t>(feature - 1), value);
            problem->rows.n_features = std::max(problem->rows.n_features, feature);
        }
        problem->rows.end_row();
    }
    std::free(line);
    std::fclose(file);
    return problem;
}

}  // namespace

extern "C" {

// Rows as CSR; values that are 0 are left out.
Problem* problem_new(int64_t n_rows, int64_t n_features, const double* values, const int32_t* columns,
                     const int64_t* starts, const double* labels, const int64_t* queries) {
    Problem* problem = new Problem(n_rows, n_features);
    for (int64_t i = 0; i < n_rows; ++i) {
        problem->rows.begin_row();
        for (int64_t k = starts[i]; k < starts[i + 1]; ++k)
            if (values[k] != 0.0) problem->rows.append(columns[k], values[k]);
        problem->rows.end_row();
    }
    problem->labels.assign(labels, labels + n_rows);
    problem->queries.assign(queries, queries + n_rows);
    return problem;
}

void problem_free(Problem* problem) { delete problem; }

double problem_value(const Problem* problem, double C, const double* w) {
    Objective objective(problem->rows, problem->labels.data(), problem->queries.data(), C);
    return objective.value(std::vector<double>(w, w + objective.n_variables()));
}

// Returns the number of accepted steps; products, values and gradients (relative to the first) are written.
int problem_fit(const Problem* problem, double C, double eps, int max_iter, double* w, int* products, int capacity,
                double* values, double* gradients) {
    Objective objective(problem->rows, problem->labels.data(), problem->queries.data(), C);
    std::vector<double> solution(objective.n_variables());
    Trace trace{capacity, 0, 0, values, gradients};
    tron(objective, eps, max_iter, solution, trace);
    std::copy(solution.begin(), solution.end(), w);
    *products = trace.products;
    return trace.iterations;
}

}  // extern "C"

// The same as a program, which reads a text file and writes a file of weights.
int main(int argc, char** argv) {
    if (argc != 5) {
        std::fprintf(stderr, "usage: %s C eps TEXT MODEL\n", argv[0]);
        return 2;
    }
    Problem* problem = read_text(argv[3]);
    FILE* model = problem == nullptr ? nullptr : std::fopen(argv[4], "w");
    if (model == nullptr) {
        std::fprintf(stderr, "cannot read %s or write %s\n", argv[3], argv[4]);
        return 1;
    }
    std::vector<double> w(problem->rows.n_features);
    int products;
    problem_fit(problem, std::strtod(argv[1], nullptr), std::strtod(argv[2], nullptr), 1000, w.data(), &products, 0,
                nullptr, nullptr);
    for (double value : w) std::fprintf(model, "%.17g\n", value);
    return std::fclose(model);
}
