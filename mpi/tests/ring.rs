//! Ranks in a ring exchange messages. This is a program, so that mpirun can start one process a rank:
//!
//! ```text
//! export CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="mpirun --oversubscribe -n 4"
//! cargo test -p swath-mpi --test ring
//! ```
//!
//! Without a launcher, there is one rank, and errors are tested too, each in its own process.

use std::process::Command;
use std::time::{Duration, Instant};
use std::{env, thread};

use swath_mpi::{Error, Mpi};

type Message = Vec<u8>;

/// The variable that names the fault which a child process commits.
const FAULT: &str = "SWATH_MPI_TEST_FAULT";

const LAUNCHERS: [&str; 2] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"];

fn main() {
    if let Ok(fault) = env::var(FAULT) {
        return commit(&fault);
    }
    let mut mpi = match Mpi::<Message>::start() {
        Err(error @ Error::NotBuilt) => return println!("{error}"),
        started => started.expect("MPI starts"),
    };
    assert_eq!(Mpi::<Message>::start().err(), Some(Error::AlreadyStarted));
    neighbours_exchange_messages_in_order(&mut mpi);
    messages_arrive_in_parts(&mut mpi);
    waiting_for_names_the_silent_rank(&mut mpi);
    waiting_for_names_a_rank_that_does_not_receive(&mut mpi);
    ranks_out_of_range_are_errors(&mut mpi);
    let mut mpi = it_moves_to_another_thread(mpi);
    let (rank, size, library) = (mpi.rank(), mpi.size(), mpi.library().to_owned());
    assert!(mpi.test().expect("nothing was begun") && mpi.take().is_empty());
    mpi.finish().expect("MPI ends");
    assert_eq!(Mpi::<Message>::start().err(), Some(Error::AlreadyStarted));
    if LAUNCHERS.iter().all(|name| env::var_os(name).is_none()) {
        faults_give_errors(&library);
    }
    println!("rank {rank} of {size}: ok, {library}");
}

/// Bytes that depend on the message, its sender and their position.
fn message(len: usize, number: usize, from: usize) -> Message {
    let byte = |i: usize| (i.wrapping_mul(2654435761) >> 7) + 31 * number + 101 * from;
    (0..len).map(|i| byte(i) as u8).collect()
}

fn wait(mpi: &mut Mpi<Message>) -> Vec<Message> {
    wait_until(mpi, |mpi| mpi.test().expect("MPI works"));
    assert_eq!(mpi.waiting_for(), None);
    mpi.take()
}

fn wait_until(mpi: &mut Mpi<Message>, is_done: impl Fn(&mut Mpi<Message>) -> bool) {
    let start = Instant::now();
    while !is_done(mpi) {
        let late = mpi.waiting_for();
        assert!(start.elapsed() < Duration::from_secs(60), "waiting for rank {late:?}");
        thread::yield_now();
    }
}

/// Sends messages of these lengths to both neighbours, which may be the same rank or this one.
fn exchange(mpi: &mut Mpi<Message>, lengths: &[usize]) {
    let (rank, size) = (mpi.rank(), mpi.size());
    let neighbours = [(rank + 1) % size, (rank + size - 1) % size];
    // Messages to the left have numbers from 100.
    let mut expected = Vec::new();
    for (side, from) in [neighbours[1], neighbours[0]].into_iter().enumerate() {
        for (i, &len) in lengths.iter().enumerate() {
            mpi.receive(from, vec![0xAA; len]).expect("MPI works");
            expected.push(message(len, 100 * side + i, from));
        }
    }
    for (side, to) in neighbours.into_iter().enumerate() {
        for (i, &len) in lengths.iter().enumerate() {
            mpi.send(to, message(len, 100 * side + i, rank)).expect("MPI works");
        }
    }
    assert!(mpi.take().is_empty());
    let received = wait(mpi);
    assert!(received == expected, "rank {rank}: wrong messages");
    assert!(mpi.take().is_empty());
}

fn neighbours_exchange_messages_in_order(mpi: &mut Mpi<Message>) {
    exchange(mpi, &[1]);
    exchange(mpi, &[0]);
    exchange(mpi, &[3_000_001, 0, 1, 70_000, 1, 3_000_001, 0]);
}

fn messages_arrive_in_parts(mpi: &mut Mpi<Message>) {
    for max_part in [1, 7, 1000] {
        mpi.set_max_part(max_part);
        exchange(mpi, &[0, 1, 6, 7, 8, 999, 1000, 1001, 2000]);
    }
    mpi.set_max_part(1 << 20);
    exchange(mpi, &[3_000_001, 2 << 20]);
    mpi.set_max_part(usize::MAX);
}

fn waiting_for_names_the_silent_rank(mpi: &mut Mpi<Message>) {
    let (rank, silent) = (mpi.rank(), mpi.size() - 1);
    if rank == 0 {
        for from in 0..=silent {
            mpi.receive(from, vec![0]).expect("MPI works");
        }
        if silent == 0 {
            assert!(!mpi.test().expect("MPI works"));
        } else {
            mpi.send(0, vec![0]).expect("MPI works");
        }
        wait_until(mpi, |mpi| {
            assert!(!mpi.test().expect("MPI works") && mpi.take().is_empty());
            mpi.waiting_for() == Some(silent)
        });
        mpi.send(silent, vec![77]).expect("MPI works");
        let mut expected: Vec<Message> = (0..=silent).map(|from| vec![from as u8]).collect();
        expected[silent] = vec![77];
        assert_eq!(wait(mpi), expected);
    } else {
        let mut answer = vec![rank as u8];
        if rank == silent {
            mpi.receive(0, vec![0]).expect("MPI works");
            answer = wait(mpi).remove(0);
        }
        mpi.send(0, answer).expect("MPI works");
        assert!(wait(mpi).is_empty());
    }
}

/// A long message is not sent before it is received. The rank sends it to itself, so no other rank can receive it
/// early.
fn waiting_for_names_a_rank_that_does_not_receive(mpi: &mut Mpi<Message>) {
    const LEN: usize = 3_000_001;
    let rank = mpi.rank();
    mpi.send(rank, message(LEN, 0, rank)).expect("MPI works");
    for _ in 0..100 {
        assert!(!mpi.test().expect("MPI works"));
    }
    assert_eq!(mpi.waiting_for(), Some(rank));
    mpi.receive(rank, vec![0; LEN]).expect("MPI works");
    assert!(wait(mpi) == [message(LEN, 0, rank)]);
}

fn ranks_out_of_range_are_errors(mpi: &mut Mpi<Message>) {
    let size = mpi.size();
    let error = mpi.send(size, vec![1]).expect_err("no such rank").to_string();
    assert_eq!(error, format!("MPI_Isend: expected a rank below {size}, got {size}"));
    let error = mpi.receive(size + 4, vec![1]).expect_err("no such rank").to_string();
    assert_eq!(error, format!("MPI_Irecv: expected a rank below {size}, got {}", size + 4));
}

fn it_moves_to_another_thread(mut mpi: Mpi<Message>) -> Mpi<Message> {
    let exchanged = thread::spawn(move || {
        exchange(&mut mpi, &[5, 100_000]);
        mpi
    });
    exchanged.join().expect("the thread ends")
}

/// Starts this program once for each fault, and checks its output.
fn faults_give_errors(library: &str) {
    let run = |fault: &str, variable: Option<(&str, &str)>| {
        let mut program = Command::new(env::current_exe().expect("a program has a path"));
        let output = program.env(FAULT, fault).envs(variable).output().expect("it starts");
        (String::from_utf8(output.stdout).expect("UTF-8"), output.status)
    };
    let check = |fault: &str, expected: &str| {
        let (text, status) = run(fault, None);
        assert!(status.success() && text.contains(expected), "{fault}: {text}");
    };
    check("short", "MPI_Testall: expected 9 bytes from rank 0, got 5; again the same");
    check("unfinished", "MPI_Finalize: 1 messages are in flight");
    let is_open_mpi = library.starts_with("Open MPI");
    // Open MPI 4.1 reports this error between ranks, but not from a rank to itself.
    if !is_open_mpi {
        check("long", "truncated");
    }
    let other = LAUNCHERS[usize::from(is_open_mpi)];
    let (text, _) = run("launcher", Some((other, "3")));
    let expected = format!(
        "started as one of 3 processes by the launcher of another MPI library, but MPI has 1: \
         use the mpirun that belongs to {library}"
    );
    assert_eq!(text.trim(), expected);
    assert!(!run("abort", None).1.success());
}

/// Prints the error that a fault gives. Run by hand, it also works with several ranks.
fn commit(fault: &str) {
    let mpi = Mpi::<Message>::start();
    if fault == "launcher" {
        return println!("{}", mpi.err().expect("the launcher is another library's"));
    }
    let mut mpi = mpi.expect("MPI starts");
    if fault == "abort" {
        mpi.abort(7);
    }
    if fault == "unfinished" {
        mpi.receive(0, vec![0; 9]).expect("MPI works");
        return println!("{}", mpi.finish().expect_err("the message has not come"));
    }
    let len = if fault == "short" { 5 } else { 13 };
    let (rank, size) = (mpi.rank(), mpi.size());
    let begin = |mpi: &mut Mpi<Message>| {
        mpi.receive((rank + size - 1) % size, vec![0; 9])?;
        mpi.send((rank + 1) % size, vec![1; len])?;
        while !mpi.test()? {}
        Ok::<(), Error>(())
    };
    let error = begin(&mut mpi).expect_err("the length is another");
    assert_eq!(mpi.test(), Err(error.clone()));
    assert_eq!(mpi.send(0, vec![1]), Err(error.clone()));
    assert!(mpi.take().is_empty());
    assert_eq!(mpi.finish(), Err(error.clone()));
    println!("{error}; again the same");
}
