//! The page "From NumPy and PyTorch": the right-hand sides of its tables have the values of the left-hand sides, which
//! `tests/vectors/check_page.py` runs in those libraries and writes, with the code of both, into `page/`.

// The sections, written by the script.
#[allow(unused, clippy::all, reason = "written by a script")]
mod sections;

use std::fs;
use std::sync::Mutex;

use swath::prelude::*;

type T = Tensor<CpuBackend>;

/// The shapes and numbers of a result.
type Parts = Vec<(Vec<usize>, Vec<f64>)>;

/// A result of a snippet.
trait Found {
    fn parts(&self) -> Parts;
}

impl<F: Found + ?Sized> Found for &F {
    fn parts(&self) -> Parts {
        (**self).parts()
    }
}

impl Found for T {
    fn parts(&self) -> Parts {
        let numbers = self.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap();
        vec![(self.dims().to_vec(), numbers)]
    }
}

impl Found for Shape {
    fn parts(&self) -> Parts {
        self.dims().parts()
    }
}

macro_rules! numbers {
    ($($t:ty)*) => {$(
        impl Found for $t {
            fn parts(&self) -> Parts {
                vec![(vec![], vec![*self as f64])]
            }
        }

        impl Found for [$t] {
            fn parts(&self) -> Parts {
                vec![(vec![self.len()], self.iter().map(|&x| x as f64).collect())]
            }
        }

        impl Found for Vec<$t> {
            fn parts(&self) -> Parts {
                self[..].parts()
            }
        }
    )*};
}
numbers! { usize i64 f32 f64 }

impl Found for bool {
    fn parts(&self) -> Parts {
        vec![(vec![], vec![f64::from(u8::from(*self))])]
    }
}

impl Found for Vec<T> {
    fn parts(&self) -> Parts {
        self.iter().flat_map(T::parts).collect()
    }
}

impl<A: Found, B: Found> Found for (A, B) {
    fn parts(&self) -> Parts {
        [self.0.parts(), self.1.parts()].concat()
    }
}

impl<A: Found, B: Found, C: Found> Found for (A, B, C) {
    fn parts(&self) -> Parts {
        [self.0.parts(), self.1.parts(), self.2.parts()].concat()
    }
}

impl Found for swath::Unique<CpuBackend> {
    fn parts(&self) -> Parts {
        (&self.values, &self.indices, &self.inverse).parts()
    }
}

fn found(x: &dyn Found) -> Parts {
    x.parts()
}

/// The rows that were compared, as the code of both sides.
static ROWS: Mutex<Vec<&str>> = Mutex::new(Vec::new());
/// What is wrong with rows.
static FAULTS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// `[2, 3]: 1 2 …`, several parts separated by semicolons; without numbers the shape alone is compared.
fn parse(text: &str) -> Vec<(Vec<usize>, Option<Vec<f64>>)> {
    let part = |part: &str| {
        let (dims, numbers) = part.split_once(':').map_or((part, None), |(a, b)| (a, Some(b)));
        let dims = dims.trim().trim_matches(['[', ']']).split(", ").filter(|x| !x.is_empty());
        let numbers = numbers.map(|x| x.split_whitespace().map(|x| x.parse().unwrap()).collect());
        (dims.map(|x| x.parse().unwrap()).collect(), numbers)
    };
    text.split(';').map(part).collect()
}

fn agree(found: &Parts, want: &str) -> bool {
    let near = |(x, y): (&f64, &f64)| {
        x == y || (x - y).abs() <= 2e-6 * (1.0 + y.abs()) || x.is_nan() && y.is_nan()
    };
    found.iter().zip(parse(want)).all(|((dims, numbers), (want_dims, want))| {
        let same =
            |want: Vec<f64>| want.len() == numbers.len() && numbers.iter().zip(&want).all(near);
        *dims == want_dims && want.is_none_or(same)
    })
}

/// A row of a table: each result on the right is one on the left, of which each is one on the right. A snippet of the
/// left may have two values, that of NumPy and that of PyTorch.
fn row(code: &'static str, found: &[Parts], want: &[&str]) {
    let options = |want: &str| want.split(" | ").map(str::to_owned).collect::<Vec<_>>();
    for found in found {
        let is_one = want.iter().any(|want| options(want).iter().any(|want| agree(found, want)));
        if !is_one {
            FAULTS.lock().unwrap().push(format!("{code}\n   swath: {found:?}\n   page: {want:?}"));
        }
    }
    for want in want {
        let is_found = found.iter().any(|x| options(want).iter().any(|want| agree(x, want)));
        if !is_found {
            FAULTS.lock().unwrap().push(format!("{code}\n   swath: {found:?}\n   page: {want}"));
        }
    }
    ROWS.lock().unwrap().push(code);
}

#[test]
fn right_hand_sides_have_the_values_of_numpy_and_pytorch() {
    sections::all().unwrap();
    let faults = FAULTS.lock().unwrap();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/FROM_NUMPY_AND_PYTORCH.md");
    let page = fs::read_to_string(path).unwrap().replace("\\|", "|");
    let snippets = |line: &str| {
        let code: Vec<&str> = line.split('`').skip(1).step_by(2).collect();
        code.iter().map(|x| format!("`{x}`")).collect::<Vec<_>>().join(" ")
    };
    let lines: Vec<String> = page.lines().filter(|x| x.starts_with('|')).map(snippets).collect();
    let rows = ROWS.lock().unwrap();
    println!("{} rows compared", rows.len());
    for row in rows.iter() {
        let is_there = lines.iter().any(|line| line == row);
        assert!(is_there, "the page has no longer {row}: run tests/vectors/check_page.py");
    }
    // Rows that the script leaves out are few: those without numbers.
    assert!(rows.len() * 10 >= lines.len() * 7, "{} of {} rows", rows.len(), lines.len());
}
