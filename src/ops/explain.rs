//! `toolgate explain`: the pages of `docs/reasons/`, in the terminal.

use super::out;
use crate::gate::Reason;
use anyhow::{Result, bail};

include!(concat!(env!("OUT_DIR"), "/reason_pages.rs"));

/// Prints the page of one reason, or a line for each.
///
/// # Errors
/// The code is not one of ours; the nearest one is named.
pub fn explain(code: Option<&str>) -> Result<()> {
    let Some(code) = code else {
        let width = Reason::ALL.iter().map(|reason| reason.code().len()).max().unwrap_or_default();
        for reason in Reason::ALL {
            out::line(&format!("{:width$}  {:8}  {}", reason.code(), reason.stage(), reason.summary()))?;
        }
        return Ok(());
    };
    let wanted = code.trim().to_ascii_uppercase().replace('-', "_");
    let Some(reason) = Reason::from_code(&wanted) else {
        let nearest = Reason::ALL.iter().min_by_key(|reason| distance(reason.code(), &wanted));
        let hint = nearest.map(|reason| format!("; did you mean {reason}?")).unwrap_or_default();
        bail!("there is no reason of that name{hint} (`toolgate explain` lists them all)");
    };
    match page(reason) {
        Some(page) => out::text(page),
        None => out::line(reason.summary()),
    }
}

/// The page of a reason, as it stands in `docs/reasons/`.
pub fn page(reason: Reason) -> Option<&'static str> {
    let name = reason.code().to_ascii_lowercase().replace('_', "-");
    REASON_PAGES.iter().find(|(page, _)| *page == name).map(|(_, text)| *text)
}

/// Edit distance, for "did you mean".
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, right) in b.iter().enumerate() {
            let cost = diagonal + usize::from(left != *right);
            diagonal = row[j + 1];
            row[j + 1] = cost.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_page() {
        for reason in Reason::ALL {
            assert!(page(*reason).is_some_and(|text| text.contains(reason.code())), "{reason}");
        }
    }

    #[test]
    fn distance_finds_the_neighbour() {
        assert_eq!(distance("DUPLICATE_MEMBER", "DUPLICATE_MEMBR"), 1);
        assert_eq!(distance("", "abc"), 3);
    }
}
