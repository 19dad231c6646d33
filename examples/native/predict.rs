// Labels for lines of text, in Rust:
//
//     cc -O2 -ffp-contract=off -I$(python -m thinleaf.native) -c thinleaf.c && ar rcs libthinleaf.a thinleaf.o
//     rustc -O predict.rs -L . -l static=thinleaf && ./predict MODEL < LINES

use std::ffi::{c_char, c_int, c_void, CStr};
use std::io::BufRead;

#[repr(C)]
#[derive(Clone, Copy)]
struct Input {
    kind: c_int,
    at: *const c_void,
    values: *const f32,
    n: usize,
}

const TEXT: c_int = 4;

extern "C" {
    fn tl_model_size() -> usize;
    fn tl_memory_size(data: *const c_void, size: usize) -> usize;
    fn tl_open(m: *mut c_void, data: *const c_void, size: usize, memory: *mut c_void, n: usize) -> c_int;
    fn tl_check(m: *mut c_void) -> c_int;
    fn tl_scratch_size(m: *const c_void, kinds: c_int, text_bytes: usize) -> usize;
    fn tl_predict(m: *const c_void, input: Input, scratch: *mut c_void, n: usize) -> i32;
    fn tl_label_text(m: *const c_void, id: i32, length: *mut usize) -> *const c_char;
    fn tl_label_int(m: *const c_void, id: i32) -> i64;
    fn tl_error(status: c_int) -> *const c_char;
}

/// A model file. It owns what the C side points into, and is only read: threads may share it.
struct Model {
    at: Box<[u64]>,
    _data: Box<[u8]>,
    _memory: Box<[u64]>,
}

unsafe impl Sync for Model {}

fn words(bytes: usize) -> Box<[u64]> {
    vec![0; bytes / 8 + 1].into_boxed_slice()
}

fn message(status: c_int) -> String {
    unsafe { CStr::from_ptr(tl_error(status)) }.to_string_lossy().into_owned()
}

impl Model {
    fn open(data: Vec<u8>) -> Result<Model, String> {
        let data = data.into_boxed_slice();
        unsafe {
            let mut at = words(tl_model_size());
            let mut memory = words(tl_memory_size(data.as_ptr().cast(), data.len()));
            let model = at.as_mut_ptr().cast();
            let room = 8 * memory.len();
            let mut status = tl_open(model, data.as_ptr().cast(), data.len(), memory.as_mut_ptr().cast(), room);
            if status == 0 {
                status = tl_check(model);
            }
            if status != 0 {
                return Err(message(status));
            }
            Ok(Model { at, _data: data, _memory: memory })
        }
    }

    fn predict(&self, text: &str, scratch: &mut Vec<u64>) -> Result<String, String> {
        let model = self.at.as_ptr().cast();
        let input = Input { kind: TEXT, at: text.as_ptr().cast(), values: std::ptr::null(), n: text.len() };
        unsafe {
            let room = tl_scratch_size(model, TEXT, text.len());
            scratch.resize(scratch.len().max(room / 8 + 1), 0);
            let id = tl_predict(model, input, scratch.as_mut_ptr().cast(), 8 * scratch.len());
            if id < 0 {
                return Err(message(id));
            }
            let mut n = 0;
            let label = tl_label_text(model, id, &mut n);
            if label.is_null() {
                return Ok(tl_label_int(model, id).to_string());
            }
            let bytes = std::slice::from_raw_parts(label.cast::<u8>(), n);
            Ok(String::from_utf8_lossy(bytes).into_owned())
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: predict MODEL < LINES")?;
    let model = Model::open(std::fs::read(path)?)?;
    let mut scratch = Vec::new();
    for line in std::io::stdin().lock().lines() {
        match model.predict(&line?, &mut scratch) {
            Ok(label) => println!("{label}"),
            Err(error) => println!("error: {error}"),
        }
    }
    Ok(())
}
