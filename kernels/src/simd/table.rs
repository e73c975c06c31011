//! Tables whose rows lanes look up.

use super::Float;

/// A table of 32 rows of eight numbers for [`super::Lanes::lookup_rows`], stored twice: by rows for
/// instruction sets that load each lane's row and transpose, by columns for those that permute
/// whole columns.
pub struct Rows<E: 'static> {
    pub(super) rows: [[E; 8]; 32],
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "NEON looks rows up"))]
    pub(super) columns: [[E; 32]; 8],
}

impl<E: Float> Rows<E> {
    pub const fn new(rows: [[E; 8]; 32]) -> Self {
        let mut columns = [[rows[0][0]; 32]; 8];
        let mut i = 0;
        while i < 256 {
            columns[i % 8][i / 8] = rows[i / 8][i % 8];
            i += 1;
        }
        Rows { rows, columns }
    }

    #[inline(always)]
    pub(super) fn row(&self, index: usize) -> &[E; 8] {
        &self.rows[index & 31]
    }
}
