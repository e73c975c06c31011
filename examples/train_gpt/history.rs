//! The curve of a run: losses by step, and what is written of them.

use std::fmt::Write;

use plotters::coord::Shift;
use plotters::prelude::*;

use crate::Failure;

/// Training losses of every step so far, held-out losses of some.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    pub losses: Vec<f32>,
    /// Steps done, and the loss then.
    pub held_out: Vec<(usize, f32)>,
}

impl History {
    /// A line a step: step, training loss, held-out loss where it was measured.
    pub fn to_csv(&self) -> String {
        let mut text = String::from("step,loss,held_out\n");
        let mut held_out = self.held_out.iter().peekable();
        for (step, loss) in (1..).zip(&self.losses) {
            let measured = held_out.next_if(|(at, _)| *at == step);
            let measured = measured.map_or(String::new(), |(_, loss)| loss.to_string());
            let _ = writeln!(text, "{step},{loss},{measured}");
        }
        text
    }

    /// The curve as an SVG file.
    pub fn to_svg(&self) -> Result<String, Failure> {
        let mut text = String::new();
        self.draw(SVGBackend::with_string(&mut text, (800, 480)).into_drawing_area())?;
        Ok(text)
    }

    fn draw(&self, root: DrawingArea<SVGBackend<'_>, Shift>) -> Result<(), Failure> {
        let top = self.losses.iter().copied().fold(0.0, f32::max) * 1.05;
        root.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&root)
            .margin(16)
            .x_label_area_size(36)
            .y_label_area_size(48)
            .build_cartesian_2d(0..self.losses.len(), 0f32..top)?;
        chart.configure_mesh().x_desc("step").y_desc("nats per character").draw()?;
        let training = self.losses.iter().enumerate().map(|(step, &loss)| (step + 1, loss));
        chart
            .draw_series(LineSeries::new(training, &BLUE))?
            .label("training")
            .legend(|(x, y)| PathElement::new([(x, y), (x + 16, y)], BLUE));
        chart
            .draw_series(LineSeries::new(self.held_out.iter().copied(), RED.stroke_width(2)))?
            .label("held out")
            .legend(|(x, y)| PathElement::new([(x, y), (x + 16, y)], RED));
        chart
            .draw_series(self.held_out.iter().map(|&point| Circle::new(point, 3, RED.filled())))?;
        chart.configure_series_labels().border_style(BLACK).background_style(WHITE).draw()?;
        root.present()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::History;

    #[test]
    fn every_step_has_its_line() {
        let history = History { losses: vec![3.5, 2.0, 1.25], held_out: vec![(2, 2.5)] };
        assert_eq!(history.to_csv(), "step,loss,held_out\n1,3.5,\n2,2,2.5\n3,1.25,\n");
    }
}
