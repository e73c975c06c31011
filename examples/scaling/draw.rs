//! The chart: efficiency over ranks for three bandwidths.

use plotters::coord::Shift;
use plotters::coord::combinators::IntoLogRange;
use plotters::prelude::*;

use crate::Failure;
use crate::model::Model;

/// Factors of the bandwidth and the colours of their lines, from the palette of Okabe and Ito,
/// which colour-blind readers can tell apart.
const LINES: [(f64, RGBColor); 3] =
    [(10.0, RGBColor(0, 158, 115)), (1.0, RGBColor(0, 114, 178)), (0.1, RGBColor(213, 94, 0))];

/// Left ends of the entries of the legend, in pixels.
const LEGEND_COLUMNS: [i32; 3] = [290, 430, 570];

/// Returns the chart as an SVG image.
pub fn to_svg(model: &Model) -> Result<String, Failure> {
    let mut text = String::new();
    draw(model, SVGBackend::with_string(&mut text, (800, 480)).into_drawing_area())?;
    Ok(text)
}

fn draw(model: &Model, root: DrawingArea<SVGBackend<'_>, Shift>) -> Result<(), Failure> {
    let counts = model.rank_counts();
    // One rank alone would have an axis of length 0.
    let most = model.most_ranks().max(2);
    let labels = most.ilog2() as usize + 1;
    root.fill(&WHITE)?;
    let (head, body) = root.split_vertically(64);
    draw_head(model, &head)?;
    let mut chart = ChartBuilder::on(&body)
        .margin(16)
        .margin_top(4)
        .x_label_area_size(44)
        .y_label_area_size(60)
        .build_cartesian_2d((1.0..most as f64).log_scale().base(2.0), 0f64..105.0)?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .x_desc("ranks")
        .y_desc("efficiency in %")
        .x_labels(labels)
        .x_max_light_lines(1)
        .x_label_formatter(&|ranks| format!("{ranks:.0}"))
        .y_label_formatter(&|y| format!("{y:.0}"))
        .label_style(("sans-serif", 14))
        .draw()?;
    for (factor, colour) in LINES {
        let model = Model { bandwidth: model.bandwidth * factor, ..model.clone() };
        let points: Vec<(f64, f64)> =
            counts.iter().map(|&ranks| (ranks as f64, 100.0 * model.efficiency(ranks))).collect();
        chart.draw_series(points.iter().map(|&point| Circle::new(point, 3, colour.filled())))?;
        chart.draw_series(LineSeries::new(points, colour.stroke_width(2)))?;
    }
    root.present()?;
    Ok(())
}

/// Draws the title and the legend, above the chart: curves may run through any part of it.
fn draw_head(model: &Model, area: &DrawingArea<SVGBackend<'_>, Shift>) -> Result<(), Failure> {
    let write = |text: String, x, y| area.draw(&Text::new(text, (x, y), ("sans-serif", 15)));
    write(crate::title(model), 76, 14)?;
    write("bandwidth between hosts:".to_owned(), 76, 40)?;
    for ((factor, colour), x) in LINES.into_iter().zip(LEGEND_COLUMNS) {
        area.draw(&PathElement::new([(x, 46), (x + 26, 46)], colour.stroke_width(2)))?;
        area.draw(&Circle::new((x + 13, 46), 3, colour.filled()))?;
        write(crate::quantity(model.bandwidth * factor, "B/s"), x + 34, 40)?;
    }
    Ok(())
}
