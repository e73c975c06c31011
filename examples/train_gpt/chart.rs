//! The loss curve as an SVG file.

use std::error::Error;
use std::path::Path;

use plotters::prelude::*;

/// Writes training losses by step and held-out losses at some steps.
pub fn write(path: &Path, losses: &[f32], held_out: &[(usize, f32)]) -> Result<(), Box<dyn Error>> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)
            .map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    }
    let top = losses.iter().copied().fold(0.0, f32::max) * 1.05;
    let root = SVGBackend::new(path, (800, 480)).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .margin(16)
        .x_label_area_size(36)
        .y_label_area_size(48)
        .build_cartesian_2d(0..losses.len(), 0f32..top)?;
    chart.configure_mesh().x_desc("step").y_desc("nats per character").draw()?;
    let training = losses.iter().enumerate().map(|(step, &loss)| (step + 1, loss));
    chart
        .draw_series(LineSeries::new(training, &BLUE))?
        .label("training")
        .legend(|(x, y)| PathElement::new([(x, y), (x + 16, y)], BLUE));
    chart
        .draw_series(LineSeries::new(held_out.iter().copied(), RED.stroke_width(2)))?
        .label("held out")
        .legend(|(x, y)| PathElement::new([(x, y), (x + 16, y)], RED));
    chart.draw_series(held_out.iter().map(|&point| Circle::new(point, 3, RED.filled())))?;
    chart.configure_series_labels().border_style(BLACK).background_style(WHITE).draw()?;
    root.present()?;
    Ok(())
}
