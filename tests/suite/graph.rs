//! The graph as text: the language of Graphviz read by a small parser, each node once, deep graphs, and the
//! bytes that rules keep against what is freed when they are dropped.

use std::collections::BTreeSet;

use swath::prelude::*;

use crate::support::{alone_with, counting};

type T = Tensor<CpuBackend>;

/// Labels of nodes by name, and edges.
struct Parsed {
    nodes: Vec<(String, String)>,
    edges: Vec<(String, String)>,
}

/// Reads what `graph_dot` may write, and nothing else.
fn parse(dot: &str) -> Parsed {
    let body = dot.strip_prefix("digraph {\n").and_then(|dot| dot.strip_suffix("}\n"));
    let mut parsed = Parsed { nodes: Vec::new(), edges: Vec::new() };
    for line in body.expect("a graph in braces").lines() {
        let line = line.trim().strip_suffix(';').expect("a statement");
        if let Some((from, to)) = line.split_once(" -> ") {
            parsed.edges.push((from.to_owned(), to.to_owned()));
            continue;
        }
        let (name, rest) = line.split_once(" [label=\"").expect("a node");
        let mut label = String::new();
        let mut chars = rest.chars();
        loop {
            match chars.next().expect("the end of a label") {
                '"' => break,
                '\\' => match chars.next().expect("an escape") {
                    'n' => label.push('\n'),
                    escaped => {
                        assert!(escaped == '"' || escaped == '\\', "\\{escaped}");
                        label.push(escaped);
                    }
                },
                plain => label.push(plain),
            }
        }
        let rest: String = chars.collect();
        assert!(rest == "]" || rest == ", shape=box]", "{rest}");
        parsed.nodes.push((name.to_owned(), label));
    }
    let names: BTreeSet<&String> = parsed.nodes.iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), parsed.nodes.len(), "a node is declared twice");
    for (from, to) in &parsed.edges {
        assert!(names.contains(from) && names.contains(to), "{from} -> {to} is not declared");
    }
    parsed
}

#[test]
fn every_node_and_input_is_there_once() {
    let x = T::var("a \"quoted\\name\"", CpuBackend::from_vec(vec![1.0, 2.0], 2).unwrap());
    let w = T::ones((2, 2), DType::F64).unwrap().requires_grad();
    let e = x.exp().unwrap();
    let y = e.mul(&e).unwrap().to_dtype(DType::F64).unwrap().matmul(&w).unwrap();
    let parsed = parse(&y.graph_dot());
    let labels: Vec<&str> = parsed.nodes.iter().map(|(_, label)| &**label).collect();
    let expected = [
        "leaf \"a \"quoted\\name\"\"\n[2] f32",
        "leaf\n[2, 2] f64",
        "exp\n[2] f32\nsaves 8 B",
        "mul\n[2] f32\nsaves 16 B",
        "to_dtype\n[2] f64",
    ];
    assert_eq!(labels[..5], expected);
    assert!(labels[5..].iter().any(|label| label.starts_with("matmul\n")), "{labels:?}");
    let edge = |(a, b): (&str, &str)| (a.to_owned(), b.to_owned());
    let expected = [("n0", "n2"), ("n2", "n3"), ("n2", "n3"), ("n3", "n4")].map(edge);
    assert_eq!(parsed.edges[..4], expected);
    let text = y.graph_text();
    assert_eq!(text.matches("exp [2] f32").count(), 1, "{text}");
    assert_eq!(text.matches("%2").count(), 2, "{text}");

    let y = checkpoint_with(&[&x], |xs: &[T]| xs[0].exp()?.sin()?.sum(None, false)).unwrap();
    let parsed = parse(&y.graph_dot());
    assert_eq!(parsed.nodes[1].1, "checkpoint\n[] f32");
    assert_eq!(parsed.edges, [edge(("n0", "n1"))]);
    y.backward().unwrap();
    assert_eq!(parse(&y.graph_dot()).nodes[0].1, "sum\n[] f32\nreleased");
    let untracked = tensor![1.0];
    assert_eq!(
        (untracked.graph_dot(), untracked.graph_text()),
        ("digraph {\n}\n".into(), "".into())
    );
}

#[test]
fn deep_graphs_need_no_stack_and_little_text() {
    let work = || {
        let x = tensor![1.0].requires_grad();
        let mut y = x.clone();
        for i in 0..50_000 {
            y = if i % 2 == 0 { y.add(&x) } else { y.square() }.unwrap();
            y = y.mul(0.5).unwrap();
        }
        let parsed = parse(&y.graph_dot());
        assert_eq!(parsed.nodes.len(), 100_001);
        assert_eq!(parsed.edges.len(), 125_000);
        let text = y.graph_text();
        assert!(text.len() < 20_000_000, "{} bytes", text.len());
        assert_eq!(text.lines().count(), 125_001);
    };
    std::thread::Builder::new().stack_size(512 << 10).spawn(work).unwrap().join().unwrap();
}

#[test]
fn saved_bytes_are_what_dropping_the_rule_frees() {
    let name = "graph::saved_bytes_are_what_dropping_the_rule_frees";
    alone_with(name, &[("SWATH_POOL_BYTES", "0")], measure_saved_bytes);
}

fn measure_saved_bytes() {
    type Case = (&'static str, fn(&T) -> Result<T>);
    let cases: [Case; 19] = [
        ("neg", |x| x.neg()),
        ("exp", |x| x.exp()),
        ("log", |x| x.log()),
        ("mul", |x| x.mul(x.detach().add(1.0)?)),
        ("mul_add", |x| x.mul_add(x.detach().add(1.0)?, x.detach().add(2.0)?)),
        ("softmax", |x| x.softmax(1)),
        ("layer_norm", |x| x.layer_norm(None, None, 1e-5)),
        ("rms_norm", |x| x.rms_norm(None, 1e-5)),
        ("linear", |x| x.linear(&T::ones((128, 128), DType::F32)?.requires_grad(), None)),
        ("matmul", |x| x.matmul(&T::ones((128, 128), DType::F32)?)),
        ("bias_activation", |x| {
            x.bias_activation(&T::ones(128, DType::F32)?, nn::Activation::Gelu)
        }),
        ("scaled_dot_product_attention", |x| {
            let x = x.reshape((2, 32, 128))?;
            let [k, v] = [1.0, 2.0].map(|by| x.detach().add(by));
            x.scaled_dot_product_attention(&k?, &v?, Attention::default())
        }),
        ("conv", |x| {
            let weight = T::ones((4, 8, 1, 1), DType::F32)?.requires_grad();
            x.reshape((1, 8, 32, 32))?.conv2d(&weight, None, ConvOptions::default())
        }),
        ("max_pool", |x| x.reshape((1, 8, 32, 32))?.max_pool2d(PoolOptions::default())),
        ("batch_norm", |x| x.batch_norm_training(None, None, 1e-5).map(|(y, ..)| y)),
        ("logsumexp", |x| x.logsumexp(Some(&[1]), false)),
        ("cumprod", |x| x.cumprod(1)),
        ("gather", |x| x.gather(1, &T::zeros((64, 128), DType::I64)?)),
        ("where_cond", |x| {
            let mask = T::ones((64, 128), DType::F32)?;
            T::where_cond(&mask, x, &x.detach())
        }),
    ];
    for (op, f) in cases {
        let x = T::rand((64, 128), 1.0..2.0, &mut Rng::seed(1)).unwrap().requires_grad();
        let y = f(&x).unwrap();
        drop(x);
        let after = y.neg().unwrap();
        let text = y.graph_text();
        drop(y);
        let line = text.lines().find(|line| line.contains(&format!(" {op} "))).expect("the op");
        let saved = line.split_once("saves ").map_or(0, |(_, saved)| {
            saved.trim_end_matches(" B").parse::<usize>().expect("a number")
        });
        let result = after.numel() * size_of::<f32>();
        let before = counting::live_bytes();
        drop(after);
        // The last result is freed too, and nodes and handles; blocks of up to 16 KiB are not.
        let freed = before - counting::live_bytes() - result;
        println!("{op}: {saved} and {freed}");
        assert!(freed.abs_diff(saved) <= 8192, "{op}: says {saved}, frees {freed} bytes");
    }
}
