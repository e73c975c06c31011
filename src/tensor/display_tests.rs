use super::*;
use crate::dtype::Element;

struct Text(HostData, Shape);

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let style = TextStyle { precision: f.precision(), ..TextStyle::default() };
        f.write_str(&format(&self.0, &self.1, &self.1, style))
    }
}

fn text<T: Element>(values: impl IntoIterator<Item = T>, shape: impl Into<Shape>) -> Text {
    Text(T::into_host(values.into_iter().collect()), shape.into())
}

// The expected texts are those of NumPy's array2string(x, separator=", ", precision=4,
// floatmode="maxprec_equal"), except that `1.` is written `1.0`, booleans are lower case, integers
// below 1e8 have no exponent, and the dtype is appended.

#[test]
fn columns_have_a_common_width_and_number_of_decimals() {
    let x = text([1.5f32, -2.0, f32::NAN, f32::INFINITY], (2, 2));
    assert_eq!(x.to_string(), "[[ 1.5, -2.0],\n [ nan,  inf]]");
    assert_eq!(text([1.0f32, 2.5], 2).to_string(), "[1.0, 2.5]");
    assert_eq!(text([1.0f32, 20.0], 2).to_string(), "[ 1.0, 20.0]");
    assert_eq!(text([0.1f32, 0.25], 2).to_string(), "[0.10, 0.25]");
    assert_eq!(text([std::f32::consts::PI, 1.0], 2).to_string(), "[3.1416, 1.0000]");
    assert_eq!(text([-0.0f32, f32::NEG_INFINITY], 2).to_string(), "[-0.0, -inf]");
}

#[test]
fn the_format_precision_sets_the_decimals() {
    let x = text([std::f32::consts::PI, 1.0], 2);
    assert_eq!(format!("{x:.2}"), "[3.14, 1.00]");
    assert_eq!(format!("{x:.0}"), "[3, 1]");
    assert_eq!(format!("{:.2}", text([1e-5f32, 1.0], 2)), "[1.00e-05, 1.00e+00]");
}

#[test]
fn widely_different_magnitudes_have_exponents() {
    assert_eq!(text([1e-5f32, 1.0], 2).to_string(), "[1.0e-05, 1.0e+00]");
    assert_eq!(text([1e10f32, -1.5], 2).to_string(), "[ 1.0e+10, -1.5e+00]");
    assert_eq!(text([0.5f32, 501.0], 2).to_string(), "[5.00e-01, 5.01e+02]");
    assert_eq!(text([1e-200, 1e5], 2).to_string(), "[1.0e-200, 1.0e+005], dtype=f64");
    assert_eq!(text([0.0f32, 3.2e-5], 2).to_string(), "[0.0e+00, 3.2e-05]");
    assert_eq!(text([1.0f32, 5000.0], 2).to_string(), "[   1.0, 5000.0]");
    assert_eq!(text([0.5f32, f32::INFINITY], 2).to_string(), "[0.5, inf]");
}

#[test]
fn scalars_and_empty_tensors_are_written_in_one_line() {
    assert_eq!(text([std::f32::consts::LN_2], ()).to_string(), "0.6931");
    assert_eq!(text([3i64], ()).to_string(), "3, dtype=i64");
    assert_eq!(text::<f32>([], 0).to_string(), "[]");
    assert_eq!(text::<f64>([], (2, 0, 3)).to_string(), "[], shape=[2, 0, 3], dtype=f64");
    assert_eq!(text([1.0f32], (1, 1, 1)).to_string(), "[[[1.0]]]");
    assert_eq!(text([f32::NAN], 1).to_string(), "[nan]");
}

#[test]
fn other_dtypes_are_named() {
    assert_eq!(text([1i64, -10], 2).to_string(), "[  1, -10], dtype=i64");
    assert_eq!(text([true, false], 2).to_string(), "[ true, false], dtype=bool");
    assert_eq!(text([half::f16::from_f32(0.1)], 1).to_string(), "[0.1000], dtype=f16");
    assert_eq!(text([0u8, 255], (2, 1)).to_string(), "[[  0],\n [255]], dtype=u8");
    let large = i64::MAX;
    assert_eq!(text([large], 1).to_string(), format!("[{large}], dtype=i64"));
}

#[test]
fn matrices_are_separated_by_blank_lines() {
    let expected = "\
[[[0.0, 1.0],
  [2.0, 3.0]],

 [[4.0, 5.0],
  [6.0, 7.0]]]";
    assert_eq!(text((0..8).map(|i| i as f32), (2, 2, 2)).to_string(), expected);
}

#[test]
fn long_rows_wrap() {
    let expected = "\
[0.00, 0.25, 0.50, 0.75, 1.00, 1.25, 1.50, 1.75, 2.00, 2.25, 2.50, 2.75,
 3.00, 3.25, 3.50, 3.75, 4.00, 4.25, 4.50, 4.75, 5.00, 5.25, 5.50, 5.75,
 6.00, 6.25, 6.50, 6.75, 7.00, 7.25]";
    assert_eq!(text((0..30).map(|i| i as f32 / 4.0), 30).to_string(), expected);
}

#[test]
fn large_tensors_show_the_ends_of_each_axis() {
    let x = text(0..1001i64, 1001);
    assert_eq!(x.to_string(), "[   0,    1,    2, ...,  998,  999, 1000], dtype=i64");
    let expected = "\
[[   0.0,    1.0,    2.0, ...,   47.0,   48.0,   49.0],
 [  50.0,   51.0,   52.0, ...,   97.0,   98.0,   99.0],
 [ 100.0,  101.0,  102.0, ...,  147.0,  148.0,  149.0],
 ...,
 [1850.0, 1851.0, 1852.0, ..., 1897.0, 1898.0, 1899.0],
 [1900.0, 1901.0, 1902.0, ..., 1947.0, 1948.0, 1949.0],
 [1950.0, 1951.0, 1952.0, ..., 1997.0, 1998.0, 1999.0]]";
    assert_eq!(text((0..2000).map(|i| i as f32), (40, 50)).to_string(), expected);
}

#[test]
fn abbreviated_matrices_keep_their_blank_lines() {
    let x = text((0..1100).map(|_| 0u8), (11, 10, 10)).to_string();
    let row = "[0, 0, 0, ..., 0, 0, 0]";
    let matrix = format!("[{row},\n  {row},\n  {row},\n  ...,\n  {row},\n  {row},\n  {row}]");
    let half = format!("{matrix},\n\n {matrix},\n\n {matrix}");
    assert_eq!(x, format!("[{half},\n\n ...,\n\n {half}], dtype=u8"));
}
