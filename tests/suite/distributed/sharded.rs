//! Optimizers whose state the ranks share out.

use std::fmt::Debug;

use super::{T, on_ranks};
use swath::distributed::{ShardedOptimizer, World};
use swath::optim::{
    self, Adagrad, AdagradOptions, Adam, AdamOptions, AdamW, AdamWOptions, Lion, LionOptions,
    RmsProp, RmsPropOptions, Sgd, SgdOptions, Step, Update,
};
use swath::prelude::*;

/// Parameters of several dtypes, some with fewer elements than ranks; two are tied.
struct Model {
    weight: T,
    tied: T,
    bias: T,
    half: T,
    double: T,
}
swath::module!(Model: CpuBackend { weight, tied, bias, half, double });

impl Model {
    fn new() -> Result<Model> {
        let mut rng = Rng::seed(1);
        let weight = T::randn((7, 5), &mut rng)?.requires_grad();
        Ok(Model {
            tied: weight.clone(),
            weight,
            bias: T::randn(2, &mut rng)?.requires_grad(),
            half: T::randn((3, 3), &mut rng)?.to_dtype(DType::F16)?.requires_grad(),
            double: T::randn((), &mut rng)?.to_dtype(DType::F64)?.requires_grad(),
        })
    }

    fn gradients(&self) -> Result<Gradients<CpuBackend>> {
        let sum = |x: &T| x.to_dtype(DType::F64)?.sin()?.sum(None, false);
        let all = [&self.weight, &self.tied, &self.bias, &self.half, &self.double];
        all.map(sum).into_iter().try_fold(T::full((), 0.0f64)?, |a, b| a.add(&b?))?.backward()
    }

    fn bits(&self) -> Result<Vec<u64>> {
        let mut found = Vec::new();
        for x in [&self.weight, &self.tied, &self.bias, &self.half, &self.double] {
            let x = x.to_dtype(DType::F64)?.to_vec::<f64>()?;
            found.extend(x.into_iter().map(f64::to_bits));
        }
        Ok(found)
    }
}

type State = Vec<(String, T)>;

fn values(state: &State) -> Vec<(String, Vec<usize>, DType, Vec<f64>)> {
    let entry = |(name, x): &(String, T)| {
        let values = x.to_dtype(DType::F64).unwrap().to_vec().unwrap();
        (name.clone(), x.dims().to_vec(), x.dtype(), values)
    };
    let mut entries: Vec<_> = state.iter().map(entry).collect();
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    entries
}

/// Trains with one optimizer, and with its state shared out on several numbers of ranks: after two steps a new
/// number of ranks loads the state and takes two more.
fn compare<U: Update<CpuBackend> + Clone + Debug + Sync>(
    alone: impl Fn() -> Box<dyn Optimizer<CpuBackend>>,
    update: U,
) {
    let run = |optimizer: &mut dyn Optimizer<CpuBackend>, model: &mut Model, steps: usize| {
        for _ in 0..steps {
            let gradients = model.gradients()?;
            optimizer.step(model, &gradients)?;
        }
        Ok::<_, Error>(())
    };
    let mut expected = Vec::new();
    let mut model = Model::new().unwrap();
    let mut optimizer = alone();
    let mut half_way = None;
    for _ in 0..2 {
        run(&mut *optimizer, &mut model, 2).unwrap();
        expected.push((model.bits().unwrap(), values(&optimizer.state().unwrap())));
        half_way.get_or_insert((model.bits().unwrap(), optimizer.state().unwrap()));
    }
    let (_, state) = half_way.unwrap();
    for size in [1, 2, 3, 8] {
        for found in on_ranks(size, |world: World| {
            let mut model = Model::new()?;
            let mut optimizer = ShardedOptimizer::new(&world, update.clone())?;
            run(&mut optimizer, &mut model, 2)?;
            let at_two = (model.bits()?, values(&optimizer.state()?));
            // A new optimizer goes on with the state of the one alone.
            let mut optimizer = ShardedOptimizer::new(&world, update.clone())?;
            optimizer.load_state(state.clone())?;
            run(&mut optimizer, &mut model, 2)?;
            assert!(model.weight.is_tracked());
            Ok::<_, Error>(vec![at_two, (model.bits()?, values(&optimizer.state()?))])
        }) {
            assert_eq!(found.unwrap(), expected, "{size} ranks");
        }
    }
}

#[test]
fn parameters_and_state_are_those_of_the_optimizer_alone() {
    let adamw = AdamWOptions { weight_decay: 0.3, decays: optim::matrices, ..Default::default() };
    compare(|| Box::new(AdamW::<CpuBackend>::new(adamw).unwrap()), adamw);
    let adam = AdamOptions { learning_rate: 0.1, ..Default::default() };
    compare(|| Box::new(Adam::<CpuBackend>::new(adam).unwrap()), adam);
    let sgd = SgdOptions { learning_rate: 0.1, momentum: 0.9, ..Default::default() };
    compare(|| Box::new(Sgd::<CpuBackend>::new(sgd).unwrap()), sgd);
    let rms_prop = RmsPropOptions { momentum: 0.5, centered: true, ..Default::default() };
    compare(|| Box::new(RmsProp::<CpuBackend>::new(rms_prop).unwrap()), rms_prop);
    let adagrad =
        AdagradOptions { initial_accumulator: 0.5, rate_decay: 0.1, ..Default::default() };
    compare(|| Box::new(Adagrad::<CpuBackend>::new(adagrad).unwrap()), adagrad);
    let lion = LionOptions { weight_decay: 0.3, decays: optim::matrices, ..Default::default() };
    compare(|| Box::new(Lion::<CpuBackend>::new(lion).unwrap()), lion);
}

#[test]
fn each_rank_holds_its_share() {
    let held = |size: usize| -> Vec<usize> {
        on_ranks(size, |world| {
            let options = AdamWOptions::default();
            let mut optimizer = ShardedOptimizer::new(&world, options).unwrap();
            let mut w = T::ones(600_000, DType::F32).unwrap().requires_grad();
            let grads = w.square().unwrap().sum(None, false).unwrap().backward().unwrap();
            optimizer.step(&mut w, &grads).unwrap();
            optimizer.own_bytes()
        })
    };
    assert_eq!(held(1), [4_800_000]);
    assert_eq!(held(3), [1_600_000; 3]);
}

/// A formula of whole parameters.
#[derive(Clone, Debug)]
struct Normalized(f64);

impl Update<CpuBackend> for Normalized {
    fn name(&self) -> &'static str {
        "normalized"
    }
    fn is_elementwise(&self) -> bool {
        false
    }
    fn learning_rate(&mut self) -> &mut f64 {
        &mut self.0
    }
    fn update(&self, x: &T, g: &T, _: &mut [T], _: &Step<'_>) -> Result<T> {
        x.sub(&g.div(&g.norm(2.0, None, false)?)?.mul(self.0)?)
    }
}

#[test]
fn a_formula_of_whole_parameters_is_refused() {
    let world = World::local(1).unwrap().remove(0);
    let error = ShardedOptimizer::<_, CpuBackend>::new(&world, Normalized(0.1)).unwrap_err();
    assert!(
        error.to_string().starts_with("normalized: expected an element-wise formula"),
        "{error}"
    );
}

#[test]
fn a_missing_gradient_on_one_rank_is_an_error_on_all() {
    let found = on_ranks(3, |world| {
        let mut optimizer = ShardedOptimizer::new(&world, AdamWOptions::default())?;
        let mut model = Model::new()?;
        let gradients = match world.rank() {
            1 => Gradients::new(),
            _ => model.gradients()?,
        };
        let before = model.bits()?;
        let result = optimizer.step(&mut model, &gradients);
        assert_eq!(model.bits()?, before);
        result
    });
    assert!(matches!(&found[1], Err(Error::NoGradient { .. })), "{found:?}");
    for other in [&found[0], &found[2]] {
        assert!(matches!(other, Err(Error::Mismatch { rank: 1, .. })), "{found:?}");
    }
}

#[test]
fn other_options_on_one_rank() {
    for result in on_ranks(2, |world| {
        let own = world.rank() as f64 * 0.5;
        let mut model = Model::new()?;
        let gradients = model.gradients()?;
        let adamw = AdamWOptions { weight_decay: own, ..Default::default() };
        let rms_prop = RmsPropOptions { eps: 1e-8 * (1.0 + own), ..Default::default() };
        let momentum = RmsPropOptions { momentum: own, ..Default::default() };
        let lion = LionOptions { betas: [0.9, own], ..Default::default() };
        let direction = LionOptions { betas: [0.9 - 0.1 * own, 0.99], ..Default::default() };
        let adagrad = AdagradOptions { initial_accumulator: own, ..Default::default() };
        Ok::<_, Error>([
            ShardedOptimizer::new(&world, adamw)?.step(&mut model, &gradients),
            ShardedOptimizer::new(&world, rms_prop)?.step(&mut model, &gradients),
            ShardedOptimizer::new(&world, momentum)?.step(&mut model, &gradients),
            ShardedOptimizer::new(&world, lion)?.step(&mut model, &gradients),
            ShardedOptimizer::new(&world, direction)?.step(&mut model, &gradients),
            ShardedOptimizer::new(&world, adagrad)?.step(&mut model, &gradients),
        ])
    }) {
        for result in result.unwrap() {
            assert!(matches!(result, Err(Error::Mismatch { rank: 1, .. })), "{result:?}");
        }
    }
}

/// The learning rate of the options is that of the last step; only that of the next one counts.
#[test]
fn the_learning_rate_to_come_is_compared() {
    for result in on_ranks(2, |world| {
        let mut model = Model::new()?;
        let gradients = model.gradients()?;
        let learning_rate = if world.rank() == 0 { 0.1 } else { 0.2 };
        let options = LionOptions { learning_rate, ..Default::default() };
        let mut optimizer = ShardedOptimizer::new(&world, options)?;
        optimizer.set_learning_rate(0.1);
        optimizer.step(&mut model, &gradients)
    }) {
        result.unwrap();
    }
}

#[test]
fn a_state_that_one_rank_refuses_leaves_its_optimizer_as_it_was() {
    for result in on_ranks(2, |world| {
        let mut model = Model::new()?;
        let mut optimizer = ShardedOptimizer::new(&world, AdamWOptions::default())?;
        let gradients = model.gradients()?;
        optimizer.step(&mut model, &gradients)?;
        let mut state = optimizer.state()?;
        if world.rank() == 1 {
            for (name, x) in &mut state {
                if name == "learning_rate" {
                    *x = x.neg()?;
                }
            }
            let error = optimizer.load_state(state).unwrap_err();
            assert!(error.to_string().contains("learning_rate"), "{error}");
        }
        let gradients = model.gradients()?;
        optimizer.step(&mut model, &gradients)
    }) {
        result.unwrap();
    }
}

#[test]
fn another_shape_than_that_of_the_state() {
    for result in on_ranks(2, |world| {
        let mut optimizer = ShardedOptimizer::new(&world, AdamWOptions::default())?;
        let mut step = |shape: &[usize]| {
            let mut w = T::ones(shape, DType::F32)?.requires_grad();
            let gradients = w.square()?.sum(None, false)?.backward()?;
            optimizer.step(&mut w, &gradients)
        };
        step(&[6])?;
        assert!(matches!(step(&[2, 3]), Err(Error::InvalidArgument { op: "adamw", .. })));
        step(&[6])
    }) {
        result.unwrap();
    }
}
