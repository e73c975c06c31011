//! Random equations, shapes and layouts, on both backends. All values are small integers, so that floats
//! represent the sums of products exactly and no tolerance is needed.

use swath::prelude::*;

use crate::support::inputs::Rng as Random;

/// Names for the axes covered by `...`, the last axis last.
const COVERED: [char; 3] = ['1', '2', '3'];
const LETTERS: [char; 6] = ['a', 'B', 'c', 'i', 'Z', 'k'];

/// A random equation with all axes named.
struct Case {
    text: String,
    inputs: Vec<Vec<char>>,
    output: Vec<char>,
    shapes: Vec<Vec<usize>>,
}

impl Case {
    fn random(random: &mut Random) -> Case {
        let count = random.pick(&[1, 2, 2, 2, 2, 3, 3, 4]);
        let letters = 2 + random.below(LETTERS.len() - 1);
        let extents: Vec<usize> = (0..LETTERS.len() + COVERED.len())
            .map(|_| if random.below(60) == 0 { 0 } else { random.pick(&[1, 2, 2, 3, 3, 4, 5]) })
            .collect();
        let extent = |name: char| match COVERED.iter().position(|&c| c == name) {
            Some(i) => extents[LETTERS.len() + i],
            None => extents[LETTERS.iter().position(|&c| c == name).unwrap()],
        };
        let dots = random.below(3) == 0;
        let (mut inputs, mut texts, mut shapes) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..count {
            let mut names: Vec<char> = Vec::new();
            for _ in 0..random.below(5) {
                let name = LETTERS[random.below(letters)];
                if !names.contains(&name) || random.below(4) == 0 {
                    names.push(name);
                }
            }
            let mut text: Vec<String> = names.iter().map(char::to_string).collect();
            if dots && random.below(4) > 0 {
                let position = random.below(names.len() + 1);
                let covered = &COVERED[random.below(4).min(3)..];
                names.splice(position..position, covered.iter().copied());
                text.insert(position, "...".to_owned());
            }
            let space = if random.below(5) == 0 { " " } else { "" };
            texts.push(text.join(space));
            // An axis named once in this term may have extent 1 and be broadcast to that of another operand.
            let once = |name| names.iter().filter(|&&other| other == name).count() == 1;
            let shape: Vec<usize> = (names.iter())
                .map(|&name| match once(name) && random.below(6) == 0 {
                    true => 1,
                    false => extent(name),
                })
                .collect();
            shapes.push(shape);
            inputs.push(names);
        }
        let mut text = texts.join(if random.below(5) == 0 { " , " } else { "," });
        let mut all: Vec<char> = inputs.iter().flatten().copied().collect();
        let once: Vec<char> = all
            .iter()
            .filter(|name| all.iter().filter(|other| other == name).count() == 1)
            .copied()
            .collect();
        all.sort();
        all.dedup();
        let covered: Vec<char> =
            COVERED.iter().copied().filter(|name| all.contains(name)).collect();
        all.retain(|name| !COVERED.contains(name));
        let output = if random.below(4) == 0 {
            // Without `->`: `...`, then names that occur once, capitals first.
            all.retain(|name| once.contains(name));
            covered.into_iter().chain(all).collect()
        } else {
            let mut names: Vec<char> = Vec::new();
            for _ in 0..all.len() {
                let name = random.pick(&all);
                if !names.contains(&name) && random.below(3) > 0 {
                    names.push(name);
                }
            }
            let mut words: Vec<String> = names.iter().map(char::to_string).collect();
            if random.below(4) > 0 && text.contains("...") {
                let position = random.below(names.len() + 1);
                names.splice(position..position, covered);
                words.insert(position, "...".to_owned());
            }
            text += &format!("->{}", words.concat());
            names
        };
        Case { text, inputs, output, shapes }
    }

    /// Shape of the result, and the sums over all other indices.
    fn evaluate(&self, values: &[Vec<f64>]) -> (Vec<usize>, Vec<f64>) {
        let mut names: Vec<char> = self.output.clone();
        for &name in self.inputs.iter().flatten() {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let extents: Vec<usize> = (names.iter())
            .map(|name| {
                let axes = self.inputs.iter().zip(&self.shapes);
                let dims = axes.flat_map(|(names, shape)| names.iter().zip(shape));
                let dims: Vec<usize> =
                    dims.filter(|(other, _)| *other == name).map(|(_, &dim)| dim).collect();
                dims.iter().copied().find(|&dim| dim != 1).unwrap_or(1)
            })
            .collect();
        let shape = extents[..self.output.len()].to_vec();
        let inner: usize = extents[self.output.len()..].iter().product();
        let mut result = vec![0.0; shape.iter().product()];
        let total: usize = extents.iter().product();
        for flat in 0..total {
            let mut index = vec![0; names.len()];
            let mut rest = flat;
            for axis in (0..names.len()).rev() {
                index[axis] = rest % extents[axis];
                rest /= extents[axis];
            }
            let mut product = 1.0;
            for ((axes, shape), values) in self.inputs.iter().zip(&self.shapes).zip(values) {
                let position = axes.iter().zip(shape).fold(0, |position, (name, &dim)| {
                    let at = index[names.iter().position(|other| other == name).unwrap()];
                    position * dim + if dim == 1 { 0 } else { at }
                });
                product *= values[position];
            }
            result[flat / inner] += product;
        }
        (shape, result)
    }
}

/// A tensor of values given in row-major order, in layout number `way` of seven.
fn laid_out<B: Backend>(values: &[f64], shape: &[usize], way: usize, dtype: DType) -> Tensor<B> {
    let x = Tensor::<B>::from_vec(values.to_vec(), shape).unwrap().to_dtype(dtype).unwrap();
    let rank = shape.len();
    if rank == 0 {
        return x;
    }
    let turned: Vec<usize> = (0..rank).rev().collect();
    let rolled: Vec<usize> = (0..rank).map(|axis| (axis + 1) % rank).collect();
    let back: Vec<usize> = (0..rank).map(|axis| (axis + rank - 1) % rank).collect();
    let window = |axis: usize| -> Result<Tensor<B>> {
        let x = Tensor::cat(&[&x.ones_like()?, &x, &x.ones_like()?], axis)?;
        x.narrow(axis, shape[axis], shape[axis])
    };
    let lay_out = || match way {
        1 => x.permute(&turned)?.contiguous()?.permute(&turned),
        2 => x.permute(&rolled)?.contiguous()?.permute(&back),
        3 => window(0),
        4 => window(rank - 1),
        5 => x.flip(0)?.contiguous()?.flip(0),
        6 => {
            let column = x.unsqueeze(-1)?;
            Tensor::cat(&[&column, &column.ones_like()?], -1)?.narrow(-1, 0, 1)?.squeeze(-1)
        }
        _ => Ok(x.clone()),
    };
    lay_out().unwrap()
}

/// Makes the values equal along the first axis, and returns a tensor broadcast along it by a stride of 0.
fn repeated<B: Backend>(values: &mut [f64], shape: &[usize], dtype: DType) -> Tensor<B> {
    let row: usize = shape[1..].iter().product();
    for i in row..values.len() {
        values[i] = values[i - row];
    }
    let first: Vec<usize> = [&[1], &shape[1..]].concat();
    let x = Tensor::<B>::from_vec(values[..row].to_vec(), first).unwrap();
    x.to_dtype(dtype).unwrap().broadcast_to(shape).unwrap()
}

fn random_equations<B: Backend>(count: usize, seed: u64, dtype: DType) {
    let mut random = Random(seed);
    let mut products = 0;
    for _ in 0..count {
        let case = Case::random(&mut random);
        let mut values: Vec<Vec<f64>> = Vec::new();
        let mut operands: Vec<Tensor<B>> = Vec::new();
        for shape in &case.shapes {
            let numel = shape.iter().product();
            let mut data: Vec<f64> = (0..numel).map(|_| random.below(7) as f64 - 3.0).collect();
            let way = random.below(9);
            operands.push(match way {
                7 if numel > 0 && !shape.is_empty() => repeated(&mut data, shape, dtype),
                _ => laid_out(&data, shape, way, dtype),
            });
            values.push(data);
        }
        let (shape, expected) = case.evaluate(&values);
        let found = Tensor::einsum(&case.text, &operands.iter().collect::<Vec<_>>());
        let found = found.unwrap_or_else(|error| panic!("{error}"));
        let at = format!("{} of {:?}", case.text, case.shapes);
        assert_eq!(found.dims(), shape, "{at}");
        let found = found.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap();
        assert_eq!(found, expected, "{at}");
        products += usize::from(expected.iter().any(|&x| x != 0.0));
    }
    assert!(products > count / 2, "{products} of {count} results are other than 0");
}

#[test]
fn random_equations_on_the_cpu() {
    random_equations::<CpuBackend>(3000, 1, DType::F64);
    random_equations::<CpuBackend>(1500, 2, DType::F32);
}

#[test]
fn random_equations_on_the_reference() {
    random_equations::<ReferenceBackend>(600, 3, DType::F64);
}
