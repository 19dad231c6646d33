/* thinleaf.native._compiled: thinleaf.h for Python, with the stable ABI of 3.11 and later.
 *
 * A Model keeps the buffer of a model file and predicts with it. What it cannot take as it is, such as
 * a row of another type, goes to the Python method `_predict_one`. Without NumPy it needs none.
 */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <stdlib.h>
#include <structmember.h>

#include "thinleaf.h"

#define ROOM_FOR_TEXT 1024 /* bytes of a text that need no larger scratch */
#define ROOM_FOR_ROW 256   /* values of a list that need no memory of their own */
#define UNCHECKED 64       /* predictions until all leaves are checked at once */

typedef struct {
    PyObject_HEAD
    Py_buffer file;
    tl_model model;
    void *memory, *scratch;
    size_t room;
    PyObject **labels; /* made when they are first needed */
    int64_t n_asked;
} Model;

static PyObject *slow_name;

/* -- opening ------------------------------------------------------------------------------------- */

static PyObject *model_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *source;
    Model *self;
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    size_t need;
    int status, kinds;
    (void)kwargs;
    if (!PyArg_ParseTuple(args, "O", &source)) return NULL;
    self = (Model *)alloc(type, 0);
    if (self == NULL) return NULL;
    if (PyObject_GetBuffer(source, &self->file, PyBUF_SIMPLE) < 0) goto failed;
    need = tl_memory_size(self->file.buf, (size_t)self->file.len);
    if (need == 0) {
        PyErr_SetString(PyExc_ValueError, tl_error(TL_BAD_FILE));
        goto failed;
    }
    self->memory = PyMem_Malloc(need);
    if (self->memory == NULL) {
        PyErr_NoMemory();
        goto failed;
    }
    status = tl_open(&self->model, self->file.buf, (size_t)self->file.len, self->memory, need);
    if (status != TL_OK) {
        PyErr_SetString(PyExc_ValueError, tl_error(status));
        goto failed;
    }
    kinds = TL_DENSE | TL_PAIRS | (self->model.text == TL_OK ? TL_TEXT : 0);
    self->room = tl_scratch_size(&self->model, kinds, ROOM_FOR_TEXT);
    self->scratch = PyMem_Malloc(self->room);
    self->labels = (PyObject **)PyMem_Calloc((size_t)self->model.n_classes, sizeof(PyObject *));
    if (self->scratch == NULL || self->labels == NULL) {
        PyErr_NoMemory();
        goto failed;
    }
    return (PyObject *)self;
failed:
    Py_DECREF(self);
    return NULL;
}

static void model_dealloc(PyObject *object)
{
    Model *self = (Model *)object;
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    int64_t i;
    if (self->labels != NULL)
        for (i = 0; i < self->model.n_classes; i++) Py_XDECREF(self->labels[i]);
    PyMem_Free(self->labels);
    PyMem_Free(self->scratch);
    PyMem_Free(self->memory);
    if (self->file.obj != NULL) PyBuffer_Release(&self->file);
    release(object);
    Py_DECREF(type);
}

/* -- labels -------------------------------------------------------------------------------------- */

static PyObject *new_label(const tl_model *m, int32_t id)
{
    size_t n;
    const char *text;
    if (m->label_kind == TL_LABEL_INT) return PyLong_FromLongLong(tl_label_int(m, id));
    if (m->label_kind == TL_LABEL_FLOAT) return PyFloat_FromDouble(tl_label_float(m, id));
    if (m->label_kind == TL_LABEL_BOOL) return PyBool_FromLong((long)tl_label_int(m, id));
    text = tl_label_text(m, id, &n);
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)n, NULL);
}

/* The label of a class, a new reference. */
static PyObject *label_of(Model *self, int32_t id)
{
    if (self->labels[id] == NULL) self->labels[id] = new_label(&self->model, id);
    Py_XINCREF(self->labels[id]);
    return self->labels[id];
}

static PyObject *model_label_list(PyObject *object, PyObject *unused)
{
    Model *self = (Model *)object;
    Py_ssize_t i, n = (Py_ssize_t)self->model.n_classes;
    PyObject *list = PyList_New(n);
    (void)unused;
    for (i = 0; list != NULL && i < n; i++) {
        PyObject *label = label_of(self, (int32_t)i);
        if (label == NULL || PyList_SetItem(list, i, label) < 0) {
            Py_DECREF(list);
            return NULL;
        }
    }
    return list;
}

/* -- one sample ---------------------------------------------------------------------------------- */

/* Whether a buffer is one contiguous axis of items of a type. */
static int is_vector(const Py_buffer *view, const char *types, Py_ssize_t itemsize)
{
    const char *format = view->format;
    if (view->ndim != 1 || view->itemsize != itemsize || format == NULL) return 0;
    if (*format == '@' || *format == '=' || (*format == '<' && tl_u16((const uint8_t *)"\1") == 1)) format++;
    return format[0] != 0 && strchr(types, format[0]) != NULL && format[1] == 0;
}

static int take(PyObject *x, Py_buffer *view, const char *types, Py_ssize_t itemsize)
{
    if (PyObject_GetBuffer(x, view, PyBUF_ND | PyBUF_FORMAT) < 0) { /* strided, or no array */
        PyErr_Clear();
        return 0;
    }
    if (is_vector(view, types, itemsize)) return 1;
    PyBuffer_Release(view);
    return 0;
}

/* Values of a list or tuple of numbers; 0 if something else is in it. */
static int take_list(PyObject *x, float *row, Py_ssize_t n)
{
    int is_list = PyList_Check(x);
    Py_ssize_t i;
    for (i = 0; i < n; i++) {
        PyObject *item = is_list ? PyList_GetItem(x, i) : PyTuple_GetItem(x, i);
        double v;
        if (item == NULL || !(PyFloat_Check(item) || PyLong_Check(item))) goto no;
        v = PyFloat_AsDouble(item);
        if ((v == -1.0 && PyErr_Occurred()) || !(v - v == 0.0 || v != v) || v > 3e38 || v < -3e38) goto no;
        row[i] = (float)v;
    }
    return 1;
no:
    PyErr_Clear();
    return 0;
}

/* Predict with the model's own scratch, which nobody else uses while the GIL is held. */
static int32_t ask(Model *self, tl_input in)
{
    if (++self->n_asked == UNCHECKED) tl_check(&self->model); /* a bad leaf is told when it is met */
    if (in.kind == TL_TEXT && in.n > ROOM_FOR_TEXT) {
        size_t room = tl_scratch_size(&self->model, TL_TEXT, in.n);
        void *scratch = PyMem_Malloc(room);
        int32_t id = scratch == NULL ? TL_NO_SCRATCH : tl_predict(&self->model, in, scratch, room);
        PyMem_Free(scratch);
        return id;
    }
    return tl_predict(&self->model, in, self->scratch, self->room);
}

/* The class of a sample, or what is negative. */
static int32_t class_of(Model *self, PyObject *x, PyObject *values)
{
    int32_t id = TL_BAD_ARGUMENT;
    Py_buffer a, b;
    if (values == NULL && PyUnicode_CheckExact(x)) {
        Py_ssize_t n;
        const char *text;
        if (self->model.text != TL_OK) return TL_BAD_ARGUMENT;
        text = PyUnicode_AsUTF8AndSize(x, &n);
        if (text == NULL) {
            PyErr_Clear();
            return TL_BAD_UTF8;
        }
        return ask(self, tl_text(text, (size_t)n));
    }
    if (self->model.kind == TL_LABEL_TREE && self->model.text == TL_OK) return TL_BAD_ARGUMENT;
    if (values == NULL && (PyList_CheckExact(x) || PyTuple_CheckExact(x))) {
        float row[ROOM_FOR_ROW];
        Py_ssize_t n = PyList_CheckExact(x) ? PyList_Size(x) : PyTuple_Size(x);
        if (n > ROOM_FOR_ROW || n != self->model.n_features || !take_list(x, row, n)) return TL_BAD_ARGUMENT;
        return ask(self, tl_dense(row, (size_t)n));
    }
    if (!take(x, &a, values == NULL ? "f" : "il", 4)) return TL_BAD_ARGUMENT;
    if (values == NULL) id = ask(self, tl_dense((const float *)a.buf, (size_t)(a.len / 4)));
    else if (take(values, &b, "f", 4)) {
        if (a.len == b.len)
            id = ask(self, tl_pairs((const int32_t *)a.buf, (const float *)b.buf, (size_t)(a.len / 4)));
        PyBuffer_Release(&b);
    }
    PyBuffer_Release(&a);
    return id;
}

static PyObject *model_predict_one(PyObject *object, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    Model *self = (Model *)object;
    PyObject *slow, *all, *named, *answer = NULL;
    Py_ssize_t i, n_named = names == NULL ? 0 : PyTuple_Size(names);
    if (n_named == 0 && (n == 1 || n == 2)) {
        PyObject *values = n == 2 && args[1] != Py_None ? args[1] : NULL;
        int32_t id = class_of(self, args[0], values);
        if (id >= 0) return label_of(self, id);
    }
    slow = PyObject_GetAttr(object, slow_name);
    all = PyTuple_New(n);
    named = PyDict_New();
    for (i = 0; all != NULL && i < n; i++) {
        Py_INCREF(args[i]);
        if (PyTuple_SetItem(all, i, args[i]) < 0) goto done;
    }
    for (i = 0; named != NULL && i < n_named; i++)
        if (PyDict_SetItem(named, PyTuple_GetItem(names, i), args[n + i]) < 0) goto done;
    if (slow != NULL && all != NULL && named != NULL) answer = PyObject_Call(slow, all, named);
done:
    Py_XDECREF(slow);
    Py_XDECREF(all);
    Py_XDECREF(named);
    return answer;
}

/* -- many samples -------------------------------------------------------------------------------- */

enum { CLASS, TOPK, ALL, HELD, ONE, EVIDENCE };

typedef struct {
    int what;
    tl_model model;
    tl_input *inputs;
    int64_t n, k, at;    /* `at`: the row that failed */
    size_t longest;
    int kinds, status;
    int32_t *ids;
    double *p;
    int64_t *sizes, n_held, n_room; /* HELD grows what it fills in */
    int32_t *held_ids;
    double *held_p;
} Job;

static int hold(Job *job, int64_t n)
{
    int64_t room = job->n_room ? job->n_room : 1024;
    int32_t *ids;
    double *p;
    if (job->n_held + n <= job->n_room) return 1;
    while (room < job->n_held + n) room *= 2;
    ids = (int32_t *)realloc(job->held_ids, 4 * (size_t)room);
    if (ids != NULL) job->held_ids = ids;
    p = (double *)realloc(job->held_p, 8 * (size_t)room);
    if (p != NULL) job->held_p = p;
    if (ids == NULL || p == NULL) return 0;
    job->n_room = room;
    return 1;
}

/* Without the GIL. */
static void work(Job *job)
{
    const tl_model *m = &job->model;
    size_t room = tl_scratch_size(m, job->kinds, job->longest);
    void *scratch = malloc(room);
    int64_t i, most = tl_most_held(m);
    job->status = scratch == NULL ? TL_NO_SCRATCH : TL_OK;
    for (i = 0; i < job->n && job->status >= 0; i++) {
        tl_input in = job->inputs[i];
        job->at = i;
        if (job->what == CLASS) job->status = job->ids[i] = tl_predict(m, in, scratch, room);
        else if (job->what == TOPK)
            job->status = tl_predict_topk(m, in, (int32_t)job->k, job->ids + i * job->k, job->p + i * job->k, scratch, room);
        else if (job->what == ALL) job->status = tl_predict_proba(m, in, job->p + i * m->n_classes, scratch, room);
        else if (job->what == ONE)
            job->status = tl_proba_of(m, in, job->ids[i], job->k != 0, job->p + i, scratch, room);
        else if (job->what == EVIDENCE) job->status = tl_known_terms(m, in, job->p + 2 * i, job->p + 2 * i + 1, scratch, room);
        else if (!hold(job, most)) job->status = TL_NO_SCRATCH;
        else {
            int64_t n = tl_predict_held(m, in, job->held_ids + job->n_held, job->held_p + job->n_held, most, scratch, room);
            job->status = n < 0 ? (int)n : TL_OK;
            job->sizes[i] = n;
            job->n_held += n < 0 ? 0 : n;
        }
    }
    free(scratch);
}

/* Inputs of a tuple of texts (str, or bytes in UTF-8), a matrix, or indptr, indices and values. */
static int read_inputs(Job *job, PyObject *const *args, Py_buffer *views, int64_t begin, int64_t end)
{
    int64_t i, n = end - begin;
    job->n = n;
    job->longest = 0;
    job->inputs = (tl_input *)malloc(sizeof(tl_input) * (size_t)(n > 0 ? n : 1));
    if (job->inputs == NULL) {
        PyErr_NoMemory();
        return 0;
    }
    if (PyTuple_Check(args[0])) {
        job->kinds = TL_TEXT;
        if (begin < 0 || n < 0 || end > PyTuple_Size(args[0])) goto range;
        for (i = 0; i < n; i++) {
            PyObject *text = PyTuple_GetItem(args[0], begin + i);
            Py_ssize_t size = 0;
            const char *at;
            if (PyBytes_Check(text)) {
                at = PyBytes_AsString(text);
                size = PyBytes_Size(text);
            } else at = PyUnicode_AsUTF8AndSize(text, &size);
            if (at == NULL) return 0;
            job->inputs[i] = tl_text(at, (size_t)size);
            if ((size_t)size > job->longest) job->longest = (size_t)size;
        }
        return 1;
    }
    if (PyObject_GetBuffer(args[0], &views[0], PyBUF_SIMPLE) < 0) return 0;
    if (args[1] == Py_None) {
        int64_t width = job->model.n_features;
        job->kinds = TL_DENSE;
        if (begin < 0 || n < 0 || (width > 0 && end > views[0].len / 4 / width)) goto range;
        for (i = 0; i < n; i++)
            job->inputs[i] = tl_dense((const float *)views[0].buf + (begin + i) * width, (size_t)width);
        return 1;
    }
    if (PyObject_GetBuffer(args[1], &views[1], PyBUF_SIMPLE) < 0) return 0;
    if (PyObject_GetBuffer(args[2], &views[2], PyBUF_SIMPLE) < 0) return 0;
    job->kinds = TL_PAIRS;
    if (begin < 0 || n < 0 || end >= views[0].len / 4 || views[1].len != views[2].len) goto range;
    for (i = 0; i < n; i++) {
        const int32_t *ptr = (const int32_t *)views[0].buf + begin + i;
        if (ptr[0] < 0 || ptr[1] < ptr[0] || ptr[1] > views[1].len / 4) goto range;
        job->inputs[i] = tl_pairs((const int32_t *)views[1].buf + ptr[0], (const float *)views[2].buf + ptr[0],
                                  (size_t)(ptr[1] - ptr[0]));
    }
    return 1;
range:
    PyErr_SetString(PyExc_ValueError, "there are no such rows");
    return 0;
}

/* run(what, k, a, b, c, begin, end, ids, p): fill in ids and p; return a status, or what was held. */
static PyObject *model_run(PyObject *object, PyObject *args)
{
    Model *self = (Model *)object;
    PyObject *in[3], *ids, *p, *answer = NULL;
    Py_buffer views[5];
    Job job;
    long long k, begin, end;
    int64_t n_ids, n_p;
    int i;
    memset(views, 0, sizeof views);
    memset(&job, 0, sizeof job);
    if (!PyArg_ParseTuple(args, "iLOOOLLOO", &job.what, &k, &in[0], &in[1], &in[2], &begin, &end, &ids, &p))
        return NULL;
    if (!self->model.checked && end - begin + self->n_asked >= UNCHECKED) {
        self->n_asked = UNCHECKED;
        tl_check(&self->model);
    }
    job.model = self->model; /* what is read without the GIL does not change */
    job.k = k;
    if (!read_inputs(&job, in, views, begin, end)) goto done;
    n_ids = job.what == CLASS || job.what == ONE ? job.n : job.what == TOPK ? job.n * k : 0;
    n_p = job.what == TOPK ? job.n * k : job.what == ALL ? job.n * job.model.n_classes
          : job.what == ONE ? job.n : job.what == EVIDENCE ? 2 * job.n : 0;
    if (n_ids > 0 && PyObject_GetBuffer(ids, &views[3], PyBUF_WRITABLE) < 0) goto done;
    if (n_p > 0 && PyObject_GetBuffer(p, &views[4], PyBUF_WRITABLE) < 0) goto done;
    if (k < 0 || views[3].len < 4 * n_ids || views[4].len < 8 * n_p) {
        PyErr_SetString(PyExc_ValueError, "the room for results is too small");
        goto done;
    }
    job.ids = (int32_t *)views[3].buf;
    job.p = (double *)views[4].buf;
    job.sizes = job.what == HELD ? (int64_t *)malloc(8 * (size_t)job.n + 8) : NULL;
    if (job.what == HELD && job.sizes == NULL) {
        PyErr_NoMemory();
        goto done;
    }
    Py_BEGIN_ALLOW_THREADS
    work(&job);
    Py_END_ALLOW_THREADS
    if (job.what == HELD && job.status >= 0)
        answer = Py_BuildValue("(iNNN)", 0, PyBytes_FromStringAndSize((char *)job.sizes, (Py_ssize_t)(8 * job.n)),
                               PyBytes_FromStringAndSize((char *)job.held_ids, (Py_ssize_t)(4 * job.n_held)),
                               PyBytes_FromStringAndSize((char *)job.held_p, (Py_ssize_t)(8 * job.n_held)));
    else answer = Py_BuildValue("(iL)", job.status < 0 ? job.status : 0, begin + job.at);
done:
    free(job.sizes);
    free(job.held_ids);
    free(job.held_p);
    free(job.inputs);
    for (i = 0; i < 5; i++)
        if (views[i].obj != NULL) PyBuffer_Release(&views[i]);
    return answer;
}

/* -- the module ---------------------------------------------------------------------------------- */

#define MEMBER(name, type, field) {name, type, offsetof(Model, model) + offsetof(tl_model, field), READONLY, NULL}

static PyMemberDef members[] = {
    MEMBER("_n_features", T_LONGLONG, n_features),
    MEMBER("_n_classes", T_LONGLONG, n_classes),
    MEMBER("_kind", T_INT, kind),
    MEMBER("_label_kind", T_INT, label_kind),
    MEMBER("_fixed_width", T_INT, fixed_width),
    MEMBER("_text", T_INT, text),
    MEMBER("_hashing", T_INT, hashing),
    {NULL, 0, 0, 0, NULL},
};

static PyMethodDef methods[] = {
    {"predict_one", (PyCFunction)(void (*)(void))model_predict_one, METH_FASTCALL | METH_KEYWORDS,
     "Return the label of one sample."},
    {"_label_list", model_label_list, METH_NOARGS, "Return all labels."},
    {"_run", model_run, METH_VARARGS, "Answer for many samples."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, (void *)model_new},
    {Py_tp_dealloc, (void *)model_dealloc},
    {Py_tp_members, members},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    "thinleaf.native._compiled.Model", sizeof(Model), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots,
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_compiled", NULL, -1, NULL, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__compiled(void)
{
    PyObject *module = PyModule_Create(&definition), *type;
    if (module == NULL) return NULL;
    slow_name = PyUnicode_InternFromString("_predict_one");
    type = PyType_FromSpec(&spec);
    if (slow_name == NULL || type == NULL || PyModule_AddObject(module, "Model", type) < 0) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
