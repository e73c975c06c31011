//! The loss curve of a run, as CSV and as SVG.

use std::fmt::Write;

use plotters::coord::Shift;
use plotters::prelude::*;

use crate::Failure;

/// Training loss of every step so far, and held-out loss of some.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// Training loss of each step.
    pub losses: Vec<f32>,
    /// Number of steps done, and the held-out loss after them.
    pub held_out: Vec<(usize, f32)>,
}

impl History {
    /// Returns the curve as CSV, one line per step: step, training loss, and held-out loss if it was measured.
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

    /// Returns the curve as an SVG image.
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
    fn csv_has_one_line_per_step() {
        let history = History { losses: vec![3.5, 2.0, 1.25], held_out: vec![(2, 2.5)] };
        assert_eq!(history.to_csv(), "step,loss,held_out\n1,3.5,\n2,2,2.5\n3,1.25,\n");
    }
}
